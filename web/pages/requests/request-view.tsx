// One request: its outcome, timeline, figures and stored content.
import { Alert, Code, Group, Stack, Text } from "@mantine/core";
import { CommentDiscussionIcon } from "@primer/octicons-react";
import type { ComponentProps, ReactNode } from "react";
import { useNames } from "../../api/names.ts";
import type { RequestDetail } from "../../api/types.ts";
import { PlainLink, PlainLinkButton, TextLink } from "../../parts/page/links.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { atSecond, count, money, perSecond } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { errorMeaning, Outcome, outcomeLooks, remedyFor } from "./outcome.tsx";
import { isToolCall, modelName, operations } from "./request-columns.tsx";
import { RequestTimeline } from "./request-timeline.tsx";
import { isWorthTelling, RequestTrail } from "./request-trail.tsx";
import { ToolContent } from "./tool-content.tsx";

export function RequestView({ request }: { request: RequestDetail }) {
  const { outcome } = request;
  return (
    <Stack gap="lg">
      <Ending request={request} />
      {outcome !== "refused" && isWorthTelling(request) && (
        <DrawerPart title="Attempts">
          <RequestTrail request={request} />
        </DrawerPart>
      )}
      {outcome !== "refused" && (
        <DrawerPart title="Timeline">
          <RequestTimeline request={request} />
        </DrawerPart>
      )}
      <DrawerPart title={outcome === "refused" ? "Request" : "Details"}>
        <Figures request={request} />
      </DrawerPart>
      {outcome !== "refused" && (
        <DrawerPart title="Content">
          <Content request={request} />
        </DrawerPart>
      )}
    </Stack>
  );
}

function Ending({ request }: { request: RequestDetail }) {
  const { outcome, error_code, error_status, error_message, at } = request;
  const name = error_code === null ? "" : error_status === null ? error_code : `${error_status} ${error_code}`;
  return (
    <div>
      <Group gap="xs">
        <Outcome outcome={outcome} />
        <Text size="sm">{atSecond(at)}</Text>
      </Group>
      {outcome !== "completed" && (error_code === null || outcome === "refused") && (
        <Note mt="xs">{outcomeLooks[outcome].meaning}</Note>
      )}
      {error_code !== null && (
        <Alert color={outcome === "completed" ? "yellow" : "red"} mt="sm" title={name}>
          {error_message ?? errorMeaning(error_code) ?? outcomeLooks[outcome].meaning}
        </Alert>
      )}
      {error_code !== null && outcome === "refused" && <Remedy code={error_code} />}
    </div>
  );
}

function Remedy({ code }: { code: string }) {
  const remedy = remedyFor(code);
  if (!remedy) return null;
  const { text, page } = remedy;
  return (
    <Text size="sm" mt="sm">
      <b>What to do:</b> {text} {page && <TextLink href={page.href}>{page.name}</TextLink>}
    </Text>
  );
}

function Figures({ request }: { request: RequestDetail }) {
  const names = useNames(true);
  const { model, key, app, tags, operation, stream, cost, tokens_per_second, estimated, capped, from_cache } = request;
  const isTool = isToolCall(request);
  const isAbout = estimated && request.total_tokens > 0;
  const about = isAbout ? "about " : "";
  const asked: Fact[] = [
    [
      isTool ? "Tool" : "Model",
      model === null ? modelName(model) : <Only key="model" name="model" value={model} label={model} />,
    ],
    ["Key", <Only key="key" name="key" value={key} label={names.key(key)} />],
    ["App", app === null ? "None" : <Only key="app" name="app" value={app} label={names.app(app)} />],
    ...(tags.length === 0 ? [] : [["Tags", <Tags key="tags" tags={tags} />] satisfies Fact]),
    ["Operation", operations[operation] + (stream ? ", streamed" : "")],
  ];
  if (request.outcome === "refused") return <Facts facts={asked} />;
  if (isTool) {
    const priced: Fact = ["Cost", cost === null ? "No price set for the server" : money(cost)];
    return <Facts facts={[...asked, ...detailsOf(request), priced]} />;
  }
  return (
    <>
      <Facts
        facts={[
          ...asked,
          ["Answered by", answererOf(request)],
          ["Prompt tokens", about + count(request.prompt_tokens)],
          ...partsOf(request, "cached_tokens", "Cached prompt tokens"),
          ...partsOf(request, "cache_write_tokens", "Tokens written to the cache"),
          ["Completion tokens", about + count(request.completion_tokens)],
          ...partsOf(request, "reasoning_tokens", "Reasoning tokens"),
          ["Total tokens", about + count(request.total_tokens)],
          ...detailsOf(request),
          ["Cost", cost === null ? "No price set for the model" : money(cost)],
          ["Tokens per second", tokens_per_second === null ? "Not measured" : perSecond(tokens_per_second)],
        ]}
      />
      {from_cache && (
        <Remark>
          This answer came from the response cache, and no model was called. The token counts are those of the original
          answer.
        </Remark>
      )}
      {isAbout && !capped && (
        <Remark>The model server did not report token counts. They are estimated from the text.</Remark>
      )}
      {estimated && capped && (
        <Remark>The model server reported impossible token counts. They are estimated from the text instead.</Remark>
      )}
      {capped && !estimated && (
        <Remark>The model server reported more tokens than possible. The largest possible number is counted.</Remark>
      )}
    </>
  );
}

type Fact = ComponentProps<typeof Facts>["facts"][number];
type Part = "cached_tokens" | "cache_write_tokens" | "reasoning_tokens";

/** Returns a line for a detail of the token counts; nothing for a count of 0, because most servers report none. */
function partsOf(request: RequestDetail, part: Part, label: string): Fact[] {
  return request[part] === 0 ? [] : [[label, count(request[part])]];
}

/** Returns lines for the usage details that only some servers report. */
function detailsOf({ usage_details: details }: RequestDetail): Fact[] {
  if (details === null) return [];
  const { served = [], billed } = details;
  const counts: [string, number | undefined][] = [
    ["Tokens cached for one hour", details.cache_write_1h_tokens],
    ["Audio in the prompt", details.input_audio_tokens],
    ["Images in the prompt", details.input_image_tokens],
    ["Audio in the answer", details.output_audio_tokens],
    ["Images in the answer", details.output_image_tokens],
    ["Searches", details.searches],
    ["Documents", details.documents],
    ["Search units", details.search_units],
    ["Characters", details.characters],
    ["Seconds", details.seconds],
    ["Images", details.images],
    ["Argument bytes", details.bytes_in],
    ["Result bytes", details.bytes_out],
    ["Failed results", details.tool_errors],
  ];
  return [
    ...counts.flatMap(([label, value]): Fact[] => (value ? [[label, count(value)]] : [])),
    ...(served.length > 0 ? [["Served as", served.join(", ")] satisfies Fact] : []),
    ...(billed === undefined ? [] : [["Billed by the vendor", money(billed)] satisfies Fact]),
  ];
}

function answererOf({ upstream, attempts }: RequestDetail): string {
  if (upstream !== null) return upstream;
  return attempts === 0 ? "None: not sent to a model server" : "None: see Attempts";
}

function Remark({ children }: { children: ReactNode }) {
  return <SmallNote mt="xs">{children}</SmallNote>;
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <Group gap={8}>
      {tags.map((tag) => (
        <Only key={tag} name="tag" value={tag} label={tag} />
      ))}
    </Group>
  );
}

/** A link to the requests with the same model, key, app or tag. */
function Only({ name, value, label }: { name: "model" | "key" | "app" | "tag"; value: string; label: string }) {
  return (
    <PlainLink
      href={`/requests?${new URLSearchParams({ [name]: value })}`}
      title={`Show only requests with this ${name}`}
    >
      {label}
    </PlainLink>
  );
}

function Content({ request }: { request: RequestDetail }) {
  const { chat, operation } = request;
  if (isToolCall(request)) return <ToolContent request={request} />;
  if (chat !== null) {
    return (
      <Group gap="sm">
        <PlainLinkButton href={`/chats/${encodeURIComponent(chat)}`} leftSection={<CommentDiscussionIcon />}>
          Open the stored chat
        </PlainLinkButton>
        <Note>The messages and the answer of this request were stored.</Note>
      </Group>
    );
  }
  if (operation !== "chat") {
    return <Note>Only chats can be stored. For other requests, only this metadata is kept.</Note>;
  }
  return (
    <Note>
      The content was not stored, or you don't have access. To store a chat, send <Code>"store": true</Code> with the
      request. Stored chats appear under <TextLink href="/chats">Chats</TextLink>. An operator can turn on storing for
      the whole account. Failed chats are never stored.
    </Note>
  );
}
