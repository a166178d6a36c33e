// The columns of the request log, and the two-line rows of narrow screens.
import { Anchor, Stack, Text, VisuallyHidden } from "@mantine/core";
import { ToolsIcon } from "@primer/octicons-react";
import { Link } from "wouter";
import type { Names } from "../../api/names.ts";
import type { Request } from "../../api/types.ts";
import type { Column } from "../../parts/table/column.ts";
import type { Room } from "../../parts/table/room.ts";
import { count, duration, money, perSecond } from "../../parts/words/figures.ts";
import { ModelName } from "../../parts/words/model-name.tsx";
import { Moment, MomentLines } from "../../parts/words/moment.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { Outcome } from "./outcome.tsx";
import type { LoggedRequest } from "./request-log.ts";

export const operations: Record<Request["operation"], string> = {
  chat: "Chat",
  completion: "Completion",
  embedding: "Embedding",
  response: "Response",
  message: "Message",
  rerank: "Reranking",
  score: "Scores",
  moderation: "Moderation",
  decision: "Decision",
  speech: "Speech",
  transcription: "Transcription",
  translation: "Translation",
  image: "Image",
  image_edit: "Image edit",
  image_variation: "Image variation",
  realtime: "Realtime",
  tool: "Tool call",
  tokenize: "Tokens",
  detokenize: "Text of tokens",
};

/** Reports whether a request went to an MCP server and not to a model. */
export function isToolCall({ operation }: Pick<Request, "operation">): boolean {
  return operations[operation] === operations.tool;
}

/** Returns the model's name; the model is unknown if the request's body was not read. */
export function modelName(model: string | null): string {
  return model ?? "Model unknown";
}

interface ColumnOptions {
  names: Names;
  room: Room;
  hrefOf(id: string): string;
  /** Returns the name of an account; undefined if the page shows a single account. */
  accountOf: ((id: string) => string) | undefined;
}

export function columnsOf({ names, room, hrefOf, accountOf }: ColumnOptions): Column<LoggedRequest>[] {
  if (room === "narrow") return narrowColumns(names, hrefOf, accountOf);
  const columns = wideColumns(names, hrefOf, accountOf);
  return room === "wide" ? columns : columns.filter(({ name }) => !["cost", "first", "speed"].includes(name));
}

function wideColumns(
  names: Names,
  hrefOf: ColumnOptions["hrefOf"],
  accountOf: ColumnOptions["accountOf"],
): Column<LoggedRequest>[] {
  return [
    {
      name: "time",
      head: "Time",
      width: "6.75rem",
      cell: ({ id, at }) => <MomentLines seconds={at} href={hrefOf(id)} />,
    },
    {
      name: "outcome",
      head: "Outcome",
      width: "8.25rem",
      cell: (request) => <Ending request={request} />,
    },
    {
      name: "model",
      head: "Model, tool",
      cell: (request) => (
        <>
          <div className="cell-line">
            <ModelName name={modelName(request.model)} inherit />
          </div>
          <div className="cell-note">
            {isToolCall(request) && <ToolsIcon size={12} />} {operations[request.operation]}
            {request.stream && ", streamed"}
          </div>
        </>
      ),
    },
    {
      name: "key",
      head: accountOf ? "Account, key" : "Key, app",
      cell: ({ key, app, account }) =>
        accountOf ? (
          <TwoLines first={accountOf(account ?? "")} second={names.key(key)} />
        ) : (
          <TwoLines first={names.key(key)} second={app === null ? "" : names.app(app)} />
        ),
    },
    {
      name: "tokens",
      head: "Tokens",
      width: "5.75rem",
      numeric: true,
      cell: (request) =>
        isToolCall(request) ? (
          <None what="No tokens" />
        ) : (
          <TwoLines first={count(request.total_tokens)} second={`${count(request.prompt_tokens)} in`} isNumeric />
        ),
    },
    {
      name: "cost",
      head: "Cost",
      width: "6rem",
      numeric: true,
      cell: ({ cost }) => (cost === null ? <None what="No price" /> : money(cost)),
    },
    {
      name: "first",
      head: "First token",
      width: "6.75rem",
      numeric: true,
      cell: ({ first_token_ms }) => (first_token_ms === null ? <None what="Not measured" /> : duration(first_token_ms)),
    },
    { name: "duration", head: "Duration", width: "5.75rem", numeric: true, cell: (row) => duration(row.duration_ms) },
    {
      name: "speed",
      head: "Tokens/s",
      width: "5.75rem",
      numeric: true,
      cell: ({ tokens_per_second }) =>
        tokens_per_second === null ? <None what="Not measured" /> : perSecond(tokens_per_second),
    },
  ];
}

function narrowColumns(
  names: Names,
  hrefOf: ColumnOptions["hrefOf"],
  accountOf: ColumnOptions["accountOf"],
): Column<LoggedRequest>[] {
  return [
    {
      name: "request",
      head: "Request",
      cell: ({ id, at, model, key, account }) => (
        <Stack gap={0}>
          <Anchor component={Link} href={hrefOf(id)} size="sm" fw={500}>
            <ModelName name={modelName(model)} inherit />
          </Anchor>
          <SmallNote truncate>
            <Moment seconds={at} /> · {accountOf ? accountOf(account ?? "") : names.key(key)}
          </SmallNote>
        </Stack>
      ),
    },
    {
      name: "outcome",
      head: "Outcome",
      width: "9rem",
      cell: (request) => (
        <Stack gap={0} align="start">
          <Outcome outcome={request.outcome} />
          <SmallNote className="numeric">
            {duration(request.duration_ms)} · {count(request.total_tokens)} tok.
          </SmallNote>
        </Stack>
      ),
    },
  ];
}

function Ending({ request: { outcome, error_code } }: { request: Request }) {
  return (
    <Stack gap={0} align="start">
      <Outcome outcome={outcome} />
      {error_code !== null && (
        <SmallNote truncate maw="100%" title={error_code}>
          {error_code}
        </SmallNote>
      )}
    </Stack>
  );
}

function TwoLines({ first, second, isNumeric = false }: { first: string; second: string; isNumeric?: boolean }) {
  return (
    <>
      <div className="cell-line" title={isNumeric ? undefined : first}>
        {first}
      </div>
      {second !== "" && <div className="cell-note">{second}</div>}
    </>
  );
}

function None({ what }: { what: string }) {
  return (
    <Text span size="sm" c="dimmed" title={what}>
      <span aria-hidden="true">–</span>
      <VisuallyHidden>{what}</VisuallyHidden>
    </Text>
  );
}
