// The part of headrace.yaml about tools of servers that the gateway stands before.
import * as z from "zod";
import { field, mapping } from "../field.ts";

export const tools = field(
  z.strictObject({
    record: field(z.enum(["none", "content"]), {
      doc: "What is kept of a call of a tool beside who called which when, how it ended and its bytes: nothing, or what it was called with and what it gave, sealed, for `stored_chats.retention_days`.",
      must: "none or content",
      fix: "Write `record: content` to keep it, or leave it out.",
    }).default("none"),
    sampling_model: field(z.string().min(1).max(256), {
      doc: "The model that a server is given which asks for one (sampling), where it names none that its caller may use. Left out: it is refused.",
      must: "the id of a model, 1 to 256 characters",
      fix: "Give an id that `GET /v1/models` lists, or leave it out.",
    }).optional(),
  }),
  mapping("Tools of servers that the gateway stands before."),
);
