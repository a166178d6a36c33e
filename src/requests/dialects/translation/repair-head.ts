// Values for members and events that a server leaves out of an answer in the client's format.
import type { AnswerNames, AskedRequest } from "../answer.ts";
import type { ReplyHead, ReplyUsage } from "../conversation/reply.ts";

/**
 * The values for an answer whose server left members out. They are made on demand, because most answers are complete.
 */
export interface RepairHead extends Omit<ReplyHead, "seal"> {
  nowSeconds(): number;
  /** Returns the usage of the answer so far. */
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
