// How an engine is asked in a format that is not the client's, and what both sides of it are.

import type { Seal } from "../../../domain/seal.ts";
import type { AnswerNames, AskedRequest, Serving } from "../answer.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import type { ReplyHead } from "../conversation/reply.ts";

export interface Translation {
  /** The engine's format, and the client's. */
  readonly from: ConversationFormat;
  readonly to: ConversationFormat;
  /** The names of tools in the request that the engine got. */
  readonly names: CallNames;
  readonly seal: Seal;
  /** The tokens of the prompt as the engine counts them, once it has: for answers that tell them first. */
  promptTokens?: number | undefined;
  /** The event that tells an error in an open stream of the client's, where that does not depend on what came before. */
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
    // The count comes while the engine reads the prompt, mostly before its first token.
    get promptTokens() {
      return translation.promptTokens ?? request.promptTokens;
    },
    request: request.body,
    members: names.members,
    seal: translation.seal,
  };
}
