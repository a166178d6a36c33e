// Lists the dialect of each operation. A new API format needs a folder here and a line in this file.
import type { Operation, taskOperations } from "../../domain/models/operation.ts";
import { chat } from "./chat/chat.ts";
import { completion } from "./completion/completion.ts";
import type { Dialect } from "./dialect.ts";
import { embedding } from "./embedding/embedding.ts";
import { message } from "./message/message.ts";
import { response } from "./response/response.ts";
import { taskDialect } from "./task/task-dialect.ts";
import { tasks } from "./task/tasks.ts";

const byTask = Object.fromEntries(tasks.map((task) => [task.operation, taskDialect(task)])) as Record<
  (typeof taskOperations)[number],
  Dialect
>;
export const dialects: Readonly<Record<Operation, Dialect>> = {
  ...{ chat, completion, embedding, response, message },
  ...byTask,
};

export const operations = Object.keys(dialects) as readonly Operation[];
