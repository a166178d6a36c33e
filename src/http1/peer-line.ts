// The line before each request over a Unix socket, which names the request's client; clients themselves cannot set this
// line.
import { HeadError } from "./head.ts";

const start = "PEER ";
/** The most characters of the line, more than any address with its zone. */
export const maxPeerLineLength = 128;

/** Returns the line for `peer`, as of an incoming request. */
export function peerLine(peer: string): string {
  return `${start}${peer}\r\n`;
}

/** Returns the peer of a line without its end. Throws a HeadError (400). */
export function readPeerLine(line: string): string {
  if (!line.startsWith(start) || !/^[!-~]+$/.test(line.slice(start.length))) throw noPeerLine();
  return line.slice(start.length);
}

export function noPeerLine(): HeadError {
  return new HeadError(
    400,
    "A request over this socket must begin with the line PEER, one space, address of the client.",
  );
}
