// DNS queries whose servers are silent, and the work that the process does meanwhile.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveBySystem } from "./addresses.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-names-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Linux and root are needed to mount a separate resolver configuration. */
const mayMount = process.getuid?.() === 0 && Bun.spawnSync(["unshare", "-m", "true"]).exitCode === 0;
const silentServer = "127.77.0.1";

test("resolves localhost without a DNS server", async () => {
  expect(await resolveBySystem("localhost")).toContain("127.0.0.1");
});

test("rejects a name that does not exist", async () => {
  expect(resolveBySystem("nobody.invalid")).rejects.toThrow("name_not_found");
});

// hardening: F37
test.if(mayMount)("reads files without delay while DNS servers are silent", async () => {
  await using server = await Bun.udpSocket({ hostname: silentServer, port: 53, socket: { data() {} } }).then(
    (socket) => ({
      [Symbol.asyncDispose]: async () => socket.close(),
    }),
  );
  expect(server).toBeDefined();
  const [config, program] = [join(directory, "resolv.conf"), join(directory, "program.ts")];
  writeFileSync(config, `nameserver ${silentServer}\n`);
  writeFileSync(
    program,
    `import { readFile } from "node:fs/promises";
import { resolveBySystem } from ${JSON.stringify(join(import.meta.dir, "addresses.ts"))};
for (let i = 0; i < 16; i++) resolveBySystem("x" + i + ".example.com").catch(() => {});
await Bun.sleep(20);
const began = performance.now();
await readFile(${JSON.stringify(config)});
console.log(performance.now() - began);
process.exit(0);
`,
  );
  const command = `mount --bind ${config} /etc/resolv.conf && exec ${process.execPath} ${program}`;
  const child = Bun.spawn(["unshare", "-m", "sh", "-c", command], { stdout: "pipe", stderr: "inherit" });
  const giveUp = setTimeout(() => child.kill("SIGKILL"), 10_000);
  const took = await new Response(child.stdout).text();
  clearTimeout(giveUp);
  expect(Number(took === "" ? Number.NaN : took)).toBeLessThan(1_000);
});
