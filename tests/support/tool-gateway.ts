// What of a gateway holds a process of tools, which reads nothing of the many bytes that it is sent; to be killed.

import { join } from "node:path";
import { exchangeFor, LinkWorld } from "./link-world.ts";
import { mcpServerAt } from "./mcp-servers.ts";

const [dataDir = ""] = process.argv.slice(2);
const world = new LinkWorld({ dataDir });
const link = await world.open(mcpServerAt([process.execPath, join(import.meta.dir, "tool-process.ts"), "fine"]));
void link.request("tools/call", { name: "stop", arguments: { text: "x".repeat(4_000_000) } }, exchangeFor());
await Bun.sleep(300);
void link.request("tools/call", { name: "text", arguments: { text: "x".repeat(4_000_000) } }, exchangeFor());
await Bun.sleep(300);
process.stdout.write("asked\n");
await new Promise(() => setInterval(() => {}, 60_000));
