// WebSocket servers and clients for tests: ours on our HTTP server, and a listener that remembers what it was told.
import type { MessageLinkListener } from "../../../src/base/bytes/message-link.ts";
import { type ConnectOptions, connectWebSocket } from "../../../src/websocket/connect.ts";
import { checkUpgradeRequest } from "../../../src/websocket/handshake.ts";
import { WebSocketLink } from "../../../src/websocket/websocket-link.ts";
import { startTestServer, type TestHttp1Server, until } from "../http1/server-fixture.ts";

export const testProtocol = "test.v1";

export class RecordingListener implements MessageLinkListener {
  readonly messages: Buffer[] = [];
  drains = 0;
  end: { code: number; reason: string } | undefined;
  ends = 0;
  onMessage: ((bytes: Buffer) => void) | undefined;

  message(bytes: Uint8Array): void {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.messages.push(buffer);
    this.onMessage?.(buffer);
  }

  drained(): void {
    this.drains++;
  }

  closed(code: number, reason: string): void {
    this.ends++;
    this.end = { code, reason };
  }
}

export interface TestWebSocketServer {
  http: TestHttp1Server;
  url: URL;
  links: WebSocketLink[];
  listeners: RecordingListener[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** `onLink` is called with each, before anything is read from it. */
export function startWebSocketServer(
  onLink: (link: WebSocketLink, listener: RecordingListener) => void = () => {},
  maxMessageBytes = 1024 * 1024,
): TestWebSocketServer {
  const links: WebSocketLink[] = [];
  const listeners: RecordingListener[] = [];
  const http = startTestServer((request, reply) => {
    const checked = checkUpgradeRequest(request, testProtocol);
    if ("problem" in checked) {
      reply.send(400, checked.headers, checked.problem);
      return;
    }
    new WebSocketLink(reply.upgrade(checked.headers), {
      role: "server",
      maxMessageBytes,
      listen(link) {
        const listener = new RecordingListener();
        links.push(link);
        listeners.push(listener);
        onLink(link, listener);
        return listener;
      },
    });
  });
  return {
    http,
    url: new URL(http.url),
    links,
    listeners,
    [Symbol.asyncDispose]: async () => http.server.close(),
  };
}

export interface TestClient {
  link: WebSocketLink;
  listener: RecordingListener;
}

export async function connectTo(url: URL | string, options: Partial<ConnectOptions> = {}): Promise<TestClient> {
  const listener = new RecordingListener();
  const link = await connectWebSocket({
    url: new URL(url),
    protocol: testProtocol,
    connectMs: 3_000,
    maxMessageBytes: 1024 * 1024,
    listen: () => listener,
    ...options,
  });
  return { link, listener };
}

export { until };
