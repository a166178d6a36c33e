// Where else a server tells of itself: metrics, the doctor, backups. What must not be anywhere is looked for there too.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../fixtures/command-line.ts";
import type { TestServer } from "../support/headrace.ts";
import { filesIn } from "./data-files.ts";

/** `/metrics`, in both of its formats. */
export async function metricsOf({ url }: Pick<TestServer, "url">): Promise<string> {
  const formats = ["text/plain", "application/openmetrics-text; version=1.0.0"];
  const texts = formats.map(async (accept) => {
    const response = await fetch(`${url}/metrics`, { headers: { accept } });
    expect(response.status).toBe(200);
    return response.text();
  });
  const text = (await Promise.all(texts)).join("\n");
  expect(text).toContain("headrace_http_requests_total");
  return text;
}

/** What `headrace doctor` says beside the server, to people and to programs. */
export async function doctorOf({ dataDir }: Pick<TestServer, "dataDir">, yaml: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "headrace-canary-"));
  try {
    const file = join(folder, "headrace.yaml");
    writeFileSync(file, yaml);
    const args = ["doctor", "--data-dir", dataDir, "--config", file, "--no-discover-local"];
    const surroundings = { env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", HOME: folder } };
    const outcomes = [await runCommand(args, surroundings), await runCommand([...args, "--json"], surroundings)];
    const text = outcomes.map(({ stdout, stderr }) => `${stdout}\n${stderr}`).join("\n");
    expect(text).toContain(dataDir);
    return text;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The bytes of each file of a backup that is made while the server runs, by its name. */
export async function backupOf({ dataDir }: Pick<TestServer, "dataDir">): Promise<Map<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), "headrace-canary-"));
  try {
    const target = join(folder, "backup");
    const { code, stdout, stderr } = await runCommand(["backup", target, "--data-dir", dataDir]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("Backed up and checked")]);
    const files = filesIn(target).map((file) => [file.slice(target.length + 1), readFileSync(file, "latin1")] as const);
    expect(files.map(([name]) => name)).toContain("headrace.db");
    return new Map([...files, ["what was said", stdout + stderr]]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
