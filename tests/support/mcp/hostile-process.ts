// An MCP server as a process that goes wrong in a call, in the way that its arguments name; it speaks the protocol by hand.
import { honestTool, toolText } from "./hostile-server.ts";

export const hostileProcess = (): [string, ...string[]] => [process.execPath, import.meta.path];

type Say = (message: object) => void;

const piece = "x".repeat(65_536);

/** By the argument `how` of the call. `token`: by which progress is told. */
const wrongs: Readonly<Record<string, (say: Say, token: unknown) => unknown>> = {
  "writes a line without end": () => forever(() => process.stdout.write(piece)),
  "tells of progress without end": (say, progressToken) =>
    forever(() => say({ method: "notifications/progress", params: { progressToken, progress: 1, message: piece } })),
  "writes log lines without end": (say) =>
    forever(() => say({ method: "notifications/message", params: { level: "info", data: piece } })),
  "tells of changes without end": (say) => forever(() => say({ method: "notifications/tools/list_changed" })),
  "asks without end": (say) =>
    forever((at) => say({ id: `ask-${at}`, method: "sampling/createMessage", params: { messages: [] } })),
  "writes to standard error without end": () => forever(() => process.stderr.write(piece)),
};

async function forever(write: (at: number) => unknown): Promise<never> {
  for (let at = 0; ; at++) {
    write(at);
    if (at % 16 === 0) await Bun.sleep(1);
  }
}

if (import.meta.main) {
  // It does not want to go.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => {});
  const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  for await (const line of console) {
    const {
      id,
      method,
      params = {},
    } = JSON.parse(line) as {
      id?: unknown;
      method?: string;
      params?: { protocolVersion?: string; arguments?: { how?: string }; _meta?: { progressToken?: unknown } };
    };
    const { protocolVersion } = params;
    const info = { capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1.0.0" } };
    if (method === "initialize") say({ id, result: { protocolVersion, ...info } });
    else if (method === "tools/list") say({ id, result: { tools: [honestTool] } });
    else if (method === "tools/call") {
      const { how = "" } = params.arguments ?? {};
      if (how === "") {
        // Children that leave their parent's group do not stay either.
        const children = [0, 1, 2].map(
          () => Bun.spawn(["setsid", "sleep", "600"], { stdio: ["ignore", null, null] }).pid,
        );
        say({ id, result: toolText(JSON.stringify([process.pid, ...children])) });
      } else void wrongs[how]?.(say, params._meta?.progressToken);
    } else if (id !== undefined) say({ id, error: { code: -32601, message: "There is no such method." } });
  }
  // It stays when nobody speaks with it any more.
  setInterval(() => {}, 60_000);
}

export const processWrongs: readonly string[] = Object.keys(wrongs);
