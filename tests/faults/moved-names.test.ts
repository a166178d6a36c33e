// A name that leads to another address while the process runs, as after a failover; only root may replace the file of names.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunEnvironment } from "../../bin/bun-environment.mjs";
import { canMount } from "../support/small-disk.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-names-"));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Prints how many milliseconds a connection by name took to reach the address that the name leads to since then. */
const program = `
  import { writeFileSync } from "node:fs";
  const socket = { data() {}, open() {}, error() {} };
  const name = (address) => writeFileSync("/etc/hosts", address + " moved.test\\n");
  name("127.0.0.2");
  const old = Bun.listen({ hostname: "127.0.0.2", port: 0, socket });
  const { port } = old;
  const reach = () => Bun.connect({ hostname: "moved.test", port, socket }).then(({ remoteAddress }) => remoteAddress);
  await reach();
  old.stop(true);
  Bun.listen({ hostname: "127.0.0.3", port, socket });
  name("127.0.0.3");
  const startMs = performance.now();
  while ((await reach().catch(() => "")) !== "127.0.0.3") await Bun.sleep(50);
  console.log(performance.now() - startMs);
  process.exit();
`;

test.skipIf(!canMount)(
  "reaches a host name at its new address within 5 s of a failover",
  async () => {
    const hosts = join(directory, "hosts");
    writeFileSync(hosts, "");
    const mounted = 'mount --bind "$0" /etc/hosts && exec "$1" -e "$2"';
    const child = Bun.spawn(["unshare", "-m", "sh", "-c", mounted, hosts, process.execPath, program], {
      env: bunEnvironment(),
      stdout: "pipe",
      timeout: 60_000,
    });
    const text = await new Response(child.stdout).text();
    expect(text).toMatch(/^\d/);
    expect(Number(text)).toBeLessThan(5_000);
  },
  70_000,
);
