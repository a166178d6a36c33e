// Describes how a model server is asked in a format that is not the client's.

import type { Seal } from "../../../domain/seal.ts";
import type { AnswerNames, AskedRequest, Serving } from "../answer.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import type { ReplyHead } from "../conversation/reply.ts";

export interface Translation {
  /** The format of the model server, and the client's. */
  readonly from: ConversationFormat;
  readonly to: ConversationFormat;
  /** The tool names in the request to the model server. */
  readonly names: CallNames;
  readonly seal: Seal;
  /**
   * Tokens of the prompt as counted by the model server, once known: some client formats begin an answer with this
   * figure.
   */
  promptTokens?: number | undefined;
  /** Writes the event that reports an error in an open client stream, if the event does not depend on earlier ones. */
  readonly errorEvent?: ((rendered: string) => string) | undefined;
}

export function headOf(
  request: AskedRequest,
  names: AnswerNames,
  serving: Serving,
  translation: Translation,
): ReplyHead {
  return {
    id: names.id,
    model: serving.model.id,
    created: names.created,
    nowSeconds: () => names.nowSeconds?.() ?? names.created,
    // A getter, because the count arrives only while the server reads the prompt, usually before its first token.
    get promptTokens() {
      return translation.promptTokens ?? request.promptTokens;
    },
    request: request.body,
    members: names.members,
    seal: translation.seal,
  };
}
