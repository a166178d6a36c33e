// The answer to a client that uses HTTP/2 without negotiation, as HTTP/2 frames (RFC 9113, 4.1).

const settings = 0x04;
const goAway = 0x07;
const http11Required = 0x0d;

/**
 * Returns an empty SETTINGS frame, which must come first, followed by a GOAWAY frame with the error HTTP_1_1_REQUIRED.
 */
export function http2Refusal(reason: string): Buffer {
  const payload = Buffer.alloc(8 + Buffer.byteLength(reason));
  payload.writeUInt32BE(http11Required, 4);
  payload.write(reason, 8);
  return Buffer.concat([frame(settings, Buffer.alloc(0)), frame(goAway, payload)]);
}

/** Returns an HTTP/2 frame of stream 0, which stands for the connection itself. */
function frame(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  return Buffer.concat([head, payload]);
}
