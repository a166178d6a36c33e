// A wire between two programs that a test can cut and mend.
import { createServer, connect as dial, type Socket } from "node:net";

export interface TcpProxy {
  url: string;
  /** Breaks everything off, and lets nothing through any more. */
  cut(): void;
  mend(): void;
  /** Where connections go from now on; those that there are stay. */
  lead(port: number): void;
  /** Connections since the start. */
  connections: number;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  let port = targetPort;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    proxy.connections++;
    const target = dial(port, "127.0.0.1");
    const ends = [client, target] as const;
    for (const [index, end] of ends.entries()) {
      const other = ends[1 - index] as Socket;
      sockets.add(end);
      end.setNoDelay(true);
      end.on("data", (bytes) => void other.write(bytes));
      end.on("error", () => {});
      end.on("close", () => {
        sockets.delete(end);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  const breakAll = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const proxy: TcpProxy = {
    url: `http://127.0.0.1:${address.port}`,
    connections: 0,
    cut() {
      isCut = true;
      breakAll();
    },
    mend() {
      isCut = false;
    },
    lead(next) {
      port = next;
    },
    async [Symbol.asyncDispose]() {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
