// The line with the client's address that precedes each request on a Unix domain socket. Clients themselves cannot send
// this line.
import { HeadError } from "./head.ts";

const start = "PEER ";
/** Maximum characters of the line. Every IP address with a zone is shorter. */
export const maxPeerLineLength = 128;

/** Returns the line that tells the server the address `peer`. */
export function peerLine(peer: string): string {
  return `${start}${peer}\r\n`;
}

/** Returns the address from a line. Throws a HeadError (400) if the line is invalid. */
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
