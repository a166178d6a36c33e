// A server for tests that answers with whatever bytes the test says, and knows which connection asked what.
import type { Socket } from "bun";

export interface RawConnection {
  /** 0 for the first that was accepted. */
  readonly index: number;
  readonly socket: Socket<RawConnection>;
  /** Requests that came on it so far, with their bodies. */
  readonly requests: string[];
  /** Everything that came, complete or not. */
  received: string;
  closed: boolean;
}

export interface RawUpstream extends Disposable {
  readonly port: number;
  readonly connections: RawConnection[];
  /** All requests in the order they came. */
  readonly requests: string[];
}

export interface RawUpstreamOptions {
  unix?: string;
  tls?: { key: string; cert: string };
}

export const ok = (body: string, ...fields: string[]): string =>
  `${["HTTP/1.1 200 OK", `Content-Length: ${Buffer.byteLength(body)}`, ...fields].join("\r\n")}\r\n\r\n${body}`;

/** Calls `answer` for each complete request (head, and a body of its Content-Length). */
export function rawUpstream(
  answer: (connection: RawConnection, request: string) => void,
  options: RawUpstreamOptions = {},
): RawUpstream {
  const connections: RawConnection[] = [];
  const requests: string[] = [];
  const socket = {
    open(accepted: Socket<RawConnection>) {
      const index = connections.length;
      accepted.data = { index, socket: accepted, requests: [], received: "", closed: false };
      connections.push(accepted.data);
    },
    data(accepted: Socket<RawConnection>, bytes: Buffer) {
      const connection = accepted.data;
      connection.received += bytes.toString("latin1");
      for (;;) {
        const end = connection.received.indexOf("\r\n\r\n") + 4;
        if (end < 4) return;
        const length = Number(/content-length: (\d+)/i.exec(connection.received.slice(0, end))?.[1] ?? 0);
        if (connection.received.length < end + length) return;
        const request = connection.received.slice(0, end + length);
        connection.received = connection.received.slice(end + length);
        connection.requests.push(request);
        requests.push(request);
        answer(connection, request);
      }
    },
    close(accepted: Socket<RawConnection>) {
      if (accepted.data) accepted.data.closed = true;
    },
    error() {},
  };
  const common = { socket, ...(options.tls ? { tls: options.tls } : {}) };
  if (options.unix !== undefined) {
    const listener = Bun.listen<RawConnection>({ ...common, unix: options.unix });
    return { port: 0, connections, requests, [Symbol.dispose]: () => listener.stop(true) };
  }
  const listener = Bun.listen<RawConnection>({ ...common, hostname: "127.0.0.1", port: 0 });
  return { port: listener.port, connections, requests, [Symbol.dispose]: () => listener.stop(true) };
}
