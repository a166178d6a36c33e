// A server as a process that calls tools without end, to be killed: it tells each call once it may reach its server, and once it has ended.
import { startHeadrace } from "./headrace.ts";
import { completed, mcpServerFor, principalOf, toolUseFor } from "./tool-uses.ts";

const server = await startHeadrace({ dataDir: process.argv[2] ?? "", settled: false });
const principal = await principalOf(server, server.key);
const priced = mcpServerFor({ name: "priced", nanoUsdPerCall: 3_000_000, local: false, maxConcurrency: 64 });

async function call(ends: boolean): Promise<void> {
  const use = toolUseFor(principal, { server: priced });
  const open = await server.tools.toolUses.begin(use);
  process.stdout.write(`begun ${use.requestId}\n`);
  if (!ends) return;
  await Bun.sleep(Math.random() * 3);
  await open.ended(completed);
  process.stdout.write(`ended ${use.requestId}\n`);
}

for (let i = 0; i < 8; i++) await call(false);
await Promise.all(
  Array.from({ length: 8 }, async () => {
    for (;;) await call(true);
  }),
);
