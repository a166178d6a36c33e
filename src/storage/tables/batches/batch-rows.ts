// Converts batches and their lines between rows and records.
import type { Batch, BatchLine } from "../../../domain/batches/batch.ts";
import { integer, json, jsonList, table, text } from "../../sql/table.ts";
import { makerColumns } from "../files/file-store.ts";

export const batches = table<Batch>({
  id: text,
  ...makerColumns,
  form: text,
  endpoint: text,
  inputFileId: text,
  status: text,
  ending: text,
  createdAt: integer,
  expiresAt: integer,
  inProgressAt: integer,
  finalizingAt: integer,
  cancellingAt: integer,
  endedAt: integer,
  models: jsonList,
  total: integer,
  completed: integer,
  failed: integer,
  promptTokens: integer,
  cachedTokens: integer,
  completionTokens: integer,
  reasoningTokens: integer,
  outputFileId: text,
  errorFileId: text,
  keepSeconds: integer,
  faults: jsonList,
  metadata: json,
});

export const batchLines = table<BatchLine>({
  batchId: text,
  line: integer,
  customId: text,
  model: text,
  start: { ...integer, name: "first_byte" },
  end: { ...integer, name: "end_byte" },
});
