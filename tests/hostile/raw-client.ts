// A client that writes exactly the bytes it is given: for requests that no well-behaved HTTP library would send.
import { connect, type Socket } from "node:net";

export interface RawAnswer {
  status: number;
  /** Names in lower case; repeated names joined with a comma. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

export interface RawExchange {
  /** Every complete answer, in order. */
  answers: RawAnswer[];
  /** All bytes received, as latin1. */
  text: string;
  /** Whether the server ended the connection, as opposed to our deadline. */
  closed: boolean;
}

export interface RawConnection {
  socket: Socket;
  /** Resolves when the server has ended the connection, or at the deadline. */
  ended(deadlineMs?: number): Promise<RawExchange>;
  /** Resolves as soon as `count` answers are complete, the server closed, or at the deadline. */
  answered(count?: number, deadlineMs?: number): Promise<RawExchange>;
  /** Writes and waits until the kernel took the bytes; false once the connection is gone. */
  write(bytes: string | Uint8Array): Promise<boolean>;
}

export async function openRaw(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let text = "";
  let closed = false;
  let wake = () => {};
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    wake();
  });
  for (const event of ["end", "close"] as const) {
    socket.on(event, () => {
      closed = true;
      wake();
    });
  }
  // A reset is a way to close; what was received before it counts.
  socket.on("error", () => {
    closed = true;
    wake();
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", () => resolve());
    socket.once("error", reject);
  });
  const waitFor = async (condition: () => boolean, deadlineMs: number): Promise<RawExchange> => {
    const deadline = performance.now() + deadlineMs;
    while (!condition()) {
      const left = deadline - performance.now();
      if (left <= 0) break;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return { answers: parseAnswers(text, closed), text, closed };
  };
  return {
    socket,
    ended: (deadlineMs = 5_000) => waitFor(() => closed, deadlineMs),
    answered: (count = 1, deadlineMs = 5_000) =>
      waitFor(() => closed || parseAnswers(text, false).length >= count, deadlineMs),
    write: (bytes) =>
      new Promise((resolve) => {
        if (closed || socket.destroyed) return resolve(false);
        socket.write(bytes, (error) => resolve(!error));
      }),
  };
}

/** One connection: writes, waits for one answer or the end, hangs up. */
export async function raw(url: string, bytes: string | Uint8Array, deadlineMs = 5_000): Promise<RawExchange> {
  const connection = await openRaw(url);
  await connection.write(bytes);
  const exchange = await connection.answered(1, deadlineMs);
  connection.socket.destroy();
  return exchange;
}

/** One connection: writes, waits until the server hangs up (or the deadline), so that a second answer is seen too. */
export async function rawUntilClosed(
  url: string,
  bytes: string | Uint8Array,
  deadlineMs = 1_000,
): Promise<RawExchange> {
  const connection = await openRaw(url);
  await connection.write(bytes);
  const exchange = await connection.ended(deadlineMs);
  connection.socket.destroy();
  return exchange;
}

/** A request head and body as text. `headers` are lines as they are written, Host and Content-Length included if wanted. */
export function head(requestLine: string, headers: readonly string[]): string {
  return `${[requestLine, ...headers].join("\r\n")}\r\n\r\n`;
}

function parseAnswers(text: string, closed: boolean): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let position = 0;
  while (position < text.length) {
    const end = text.indexOf("\r\n\r\n", position);
    if (end < 0) break;
    const [statusLine = "", ...lines] = text.slice(position, end).split("\r\n");
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1]);
    if (!status) break;
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      const name = line.slice(0, colon).toLowerCase();
      const value = line.slice(colon + 1).trim();
      headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
    }
    const start = end + 4;
    if (status < 200) {
      position = start;
      continue;
    }
    const parsed = readBody(text, start, headers, closed);
    if (!parsed) break;
    answers.push({ status, headers, body: Buffer.from(parsed.body, "latin1").toString("utf8") });
    position = parsed.next;
  }
  return answers;
}

function readBody(
  text: string,
  start: number,
  headers: Readonly<Record<string, string>>,
  closed: boolean,
): { body: string; next: number } | undefined {
  if (headers["transfer-encoding"]?.includes("chunked")) {
    let body = "";
    for (let position = start; ; ) {
      const lineEnd = text.indexOf("\r\n", position);
      if (lineEnd < 0) return undefined;
      const size = Number.parseInt(text.slice(position, lineEnd), 16);
      if (Number.isNaN(size)) return undefined;
      const next = lineEnd + 2 + size + 2;
      if (text.length < next) return undefined;
      body += text.slice(lineEnd + 2, lineEnd + 2 + size);
      position = next;
      if (size === 0) return { body, next: position };
    }
  }
  const length = headers["content-length"];
  if (length !== undefined) {
    const next = start + Number(length);
    return text.length < next ? undefined : { body: text.slice(start, next), next };
  }
  return closed ? { body: text.slice(start), next: text.length } : undefined;
}
