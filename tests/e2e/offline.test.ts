// Once it is installed, Headrace starts and answers where there is no network, and does not try to reach any.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeWorkspace, type Program, startProgram, type Workspace } from "../support/program.ts";

/** Words before a command that leave it this machine alone, as a network of its own. */
const alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];

function noNetworkReason(): string | undefined {
  const tried = spawnSync(alone[0] ?? "", [...alone.slice(1), "nsenter", "--version"], { encoding: "utf8" });
  return tried.status === 0 ? undefined : `no network of its own can be made: ${tried.error ?? tried.stderr}`;
}

const reason = process.platform === "linux" ? noNetworkReason() : "network namespaces are of Linux";
if (reason !== undefined) console.log(`Starting without a network is not tested here: ${reason}`);

describe.skipIf(reason !== undefined)("without a network", () => {
  let workspace: Workspace;
  let program: Program;
  let url = "";
  let key = "";

  beforeAll(async () => {
    workspace = makeWorkspace();
    program = startProgram(workspace, ["serve"], {}, alone);
    url = (await program.says(/Base URL {3}(\S+)/))[1] ?? "";
    key = String((await Bun.file(join(workspace.dataDir, "credentials.json")).json()).api_key);
  });

  afterAll(async () => {
    await program[Symbol.asyncDispose]();
    await workspace[Symbol.asyncDispose]();
  });

  const inside = (...command: string[]) => {
    const { stdout, stderr, status } = spawnSync("nsenter", ["--target", String(program.pid), "--net", ...command], {
      encoding: "utf8",
    });
    return { stdout, stderr, status };
  };
  const ask = (path: string, ...more: string[]) =>
    inside("curl", "-s", "--max-time", "30", ...more, "-H", `Authorization: Bearer ${key}`, `${url}${path}`);

  /** How often something in there tried to reach an address that is not this machine, by the kernel's count. */
  function attempts(): number {
    const at = `/proc/${program.pid}/net`;
    const [names = "", values = ""] = readFileSync(`${at}/snmp`, "utf8").split("\n");
    const of4 = Number(values.split(" ")[names.split(" ").indexOf("OutNoRoutes")]);
    const of6 = Number(/^Ip6OutNoRoutes\s+(\d+)/m.exec(readFileSync(`${at}/snmp6`, "utf8"))?.[1] ?? 0);
    return of4 + of6;
  }

  // hardening: S4
  test("starts without a network and answers with the demo model", () => {
    // Without a temperature of 0 the model's words are drawn, and its answer may end before the fourth token.
    const messages = [{ role: "user", content: "Hi" }];
    const body = JSON.stringify({ model: "tiny-demo", messages, max_tokens: 4, temperature: 0 });
    const { stdout } = ask("/chat/completions", "-H", "Content-Type: application/json", "-d", body);
    expect(JSON.parse(stdout)).toMatchObject({ object: "chat.completion", usage: { completion_tokens: 4 } });
    expect(ask("/models").stdout).toContain("tiny-demo");
    expect(inside("curl", "-s", url.replace(/v1$/, "docs/api")).stdout).toContain("API reference");
    expect(inside("curl", "-s", url.replace(/v1$/, "docs/")).stdout).toContain("Headrace");
  });

  // hardening: S4
  test("tries to reach no other machine, not even by a name lookup, without a network", () => {
    expect(attempts()).toBe(0);
    // Such an attempt would have been counted.
    inside("curl", "-s", "--max-time", "1", "http://192.0.2.1/");
    expect(attempts()).toBeGreaterThan(0);
  });
});
