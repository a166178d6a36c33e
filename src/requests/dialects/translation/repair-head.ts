// Values for members and events that a server leaves out of an answer in the client's API format.
import type { AnswerNames, AskedRequest } from "../answer.ts";
import type { ReplyHead, ReplyUsage } from "../conversation/reply.ts";

/**
 * Values for members that the server left out of an answer. They are made only when needed, because most answers are
 * complete.
 */
export interface RepairHead extends Omit<ReplyHead, "seal"> {
  nowSeconds(): number;
  /** Returns the usage that the answer has reported so far. */
  usage(): ReplyUsage;
}

export function repairHead(
  request: AskedRequest,
  names: AnswerNames,
  model: () => string,
  usage: () => ReplyUsage,
): RepairHead {
  return {
    get id() {
      return names.id;
    },
    get model() {
      return model();
    },
    get created() {
      return names.created;
    },
    nowSeconds: () => names.nowSeconds?.() ?? names.created,
    get promptTokens() {
      return request.promptTokens;
    },
    get request() {
      return request.body;
    },
    get members() {
      return names.members;
    },
    usage,
  };
}
