// A way to a server that a test can cut: connections end at once, and no new one comes about.
import { connect, createServer, type Socket } from "node:net";

export interface CutLink {
  port: number;
  cut(): void;
  mend(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startCutLink(targetPort: number): Promise<CutLink> {
  let isCut = false;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    keep(near);
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect(targetPort, "127.0.0.1");
    keep(far);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: typeof address === "object" && address ? address.port : 0,
    cut,
    mend() {
      isCut = false;
    },
    async [Symbol.asyncDispose]() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
