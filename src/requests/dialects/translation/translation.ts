// Describes how a request is translated for a model server whose API format is not the client's.

import type { Seal } from "../../../domain/seal.ts";
import type { AnswerNames, AskedRequest, Serving } from "../answer.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import type { ReplyHead } from "../conversation/reply.ts";

export interface Translation {
  /** The format of the model server, and the format of the client. */
  readonly from: ConversationFormat;
  readonly to: ConversationFormat;
  /** The tool names that the request to the model server uses. */
  readonly names: CallNames;
  readonly seal: Seal;
  /**
   * Number of prompt tokens, as soon as the model server has counted them. In some client formats, an answer begins
   * with this figure.
   */
  promptTokens?: number | undefined;
  /**
   * Writes the event that reports an error in an open client stream. Undefined if this event depends on earlier events.
   */
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
    // This is a getter, because the count arrives only while the server reads the prompt, usually before its first
    // token.
    get promptTokens() {
      return translation.promptTokens ?? request.promptTokens;
    },
    request: request.body,
    members: names.members,
    seal: translation.seal,
  };
}
