// Errors of the OAuth flow with an MCP server, without texts of the remote server, for users and the log.
import { GatewayError } from "../../base/errors.ts";
import { egressFault } from "../../egress/send.ts";

class AuthorizationFault extends Error {
  readonly word: string;

  constructor(message: string, word: string) {
    super(message);
    this.word = word;
  }
}

export function fault(message: string, word: string): AuthorizationFault {
  return new AuthorizationFault(message, word);
}

/** Runs `work` and converts its errors. The remote server's text is left out, because it may contain secrets. */
export async function orFault<Value>(step: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    const { IssuerMismatchError, OAuthError } = await import("@modelcontextprotocol/client");
    const said = (message: string, word: string) =>
      new GatewayError("upstream_error", message, { detail: `tool authorization: ${step}: ${word}` });
    if (error instanceof AuthorizationFault) throw said(`The server cannot be connected. ${error.message}`, error.word);
    if (error instanceof IssuerMismatchError) {
      throw said("The answer came from another authorization server than the one that was asked.", "issuer_mismatch");
    }
    if (error instanceof OAuthError) {
      const code = /^[a-z_]{1,40}$/.test(error.code) ? error.code : "unknown";
      throw said(`The server's authorization server refused it: ${code}.`, code);
    }
    const word = egressFault(error);
    throw said(
      "The server, or its authorization server, did not answer as one that people can connect to. Try again; if it stays so, tell whoever runs this server.",
      word === "not_sent" && error instanceof Error ? error.name : word,
    );
  }
}
