// Tests the text at start: it has the set-up link for the first person only.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { banner } from "./banner.ts";
import { createTerminal } from "./terminal.ts";

const { out: plain } = createTerminal({ write: () => {} }, { write: () => {} }, {});
const url = "http://127.0.0.1:7545";

test("shows the link for the first sign-in on a line of its own, if there is one", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-banner-"));
  try {
    const record = { prefix: "sk_dev_hr_", last4: "AbC1", environment: "dev" } as const;
    const server = { baseUrl: `${url}/v1`, firstKey: { record }, catalog: { list: () => [] } };
    const config = { dataDir, mode: "development", upstreams: [], databaseUrl: undefined } as const;
    const shown = (link?: string) => banner(config, server, [], plain, link);
    expect(shown(`${url}/setup/abc`)).toContain(`\n  Create your sign-in: ${url}/setup/abc (works once, 24 h)\n`);
    expect(shown()).not.toContain("sign-in");
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("tells on a replica that did not create the first key where to find the key", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-banner-"));
  try {
    const record = { prefix: "sk_live_hr_", last4: "AbC1", environment: "live" } as const;
    const server = { baseUrl: `${url}/v1`, firstKey: { record }, catalog: { list: () => [] } };
    const config = { dataDir, mode: "production", upstreams: [], databaseUrl: "postgres://db/headrace" } as const;
    const shown = banner(config, server, [], plain);
    expect(shown).toContain(
      "sk_live_hr_…AbC1   (shown by the replica that started first, and in its credentials.json)",
    );
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("shows dashboard and docs below the public URL", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-banner-"));
  try {
    const record = { prefix: "sk_live_hr_", last4: "AbC1", environment: "live" } as const;
    const server = { baseUrl: "https://ai.example.com/v1", firstKey: { record }, catalog: { list: () => [] } };
    const config = { dataDir, mode: "production", upstreams: [], databaseUrl: undefined } as const;
    const shown = banner(config, server, [], plain);
    expect(shown).toContain("  Dashboard  https://ai.example.com/\n");
    expect(shown).toContain("  Docs       https://ai.example.com/docs\n");
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
