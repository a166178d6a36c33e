// What is known of a request: how it ended, where its time went, its figures, and where its content is.
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
        <DrawerPart title="What was tried">
          <RequestTrail request={request} />
        </DrawerPart>
      )}
      {outcome !== "refused" && (
        <DrawerPart title="Where the time went">
          <RequestTimeline request={request} />
        </DrawerPart>
      )}
      <DrawerPart title={outcome === "refused" ? "What was asked for" : "Figures"}>
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
    const priced: Fact = ["Cost", cost === null ? "The server has no price" : money(cost)];
    return <Facts facts={[...asked, ...detailsOf(request), priced]} />;
  }
  return (
    <>
      <Facts
        facts={[
          ...asked,
          ["Answered by", answererOf(request)],
          ["Prompt tokens", about + count(request.prompt_tokens)],
          ...partsOf(request, "cached_tokens", "Of these from a cache"),
          ...partsOf(request, "cache_write_tokens", "Of these written to a cache"),
          ["Completion tokens", about + count(request.completion_tokens)],
          ...partsOf(request, "reasoning_tokens", "Of these thought"),
          ["Tokens in all", about + count(request.total_tokens)],
          ...detailsOf(request),
          ["Cost", cost === null ? "The model has no price" : money(cost)],
          ["Tokens per second", tokens_per_second === null ? "Not timed" : perSecond(tokens_per_second)],
        ]}
      />
      {from_cache && (
        <Remark>The answer was one that was kept: no model was asked. Its tokens are those of when it was made.</Remark>
      )}
      {isAbout && !capped && (
        <Remark>The model server did not tell how many tokens there were: they are estimated by the text.</Remark>
      )}
      {estimated && capped && (
        <Remark>
          The model server told of another number of tokens than there can have been: they are estimated by the text.
        </Remark>
      )}
      {capped && !estimated && (
        <Remark>
          The model server told of more tokens than there can have been. Counted are the most there can be.
        </Remark>
      )}
    </>
  );
}

type Fact = ComponentProps<typeof Facts>["facts"][number];
type Part = "cached_tokens" | "cache_write_tokens" | "reasoning_tokens";

/** Nothing where there are none: most servers tell of none. */
function partsOf(request: RequestDetail, part: Part, label: string): Fact[] {
  return request[part] === 0 ? [] : [[label, count(request[part])]];
}

/** What few servers tell, where they do. */
function detailsOf({ usage_details: details }: RequestDetail): Fact[] {
  if (details === null) return [];
  const { served = [], billed } = details;
  const counts: [string, number | undefined][] = [
    ["Written to a cache for an hour", details.cache_write_1h_tokens],
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
    ["Bytes asked with", details.bytes_in],
    ["Bytes of the result", details.bytes_out],
    ["Results that say that they failed", details.tool_errors],
  ];
  return [
    ...counts.flatMap(([label, value]): Fact[] => (value ? [[label, count(value)]] : [])),
    ...(served.length > 0 ? [["Served as", served.join(", ")] satisfies Fact] : []),
    ...(billed === undefined ? [] : [["The vendor's bill", money(billed)] satisfies Fact]),
  ];
}

function answererOf({ upstream, attempts }: RequestDetail): string {
  if (upstream !== null) return upstream;
  return attempts === 0 ? "None: no model server was asked" : "None: see what was tried";
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

/** Leads to the requests that have this in common. */
function Only({ name, value, label }: { name: "model" | "key" | "app" | "tag"; value: string; label: string }) {
  return (
    <PlainLink href={`/requests?${new URLSearchParams({ [name]: value })}`} title={`Only requests with this ${name}`}>
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
        <Note>Its messages and answer were kept, as was asked for.</Note>
      </Group>
    );
  }
  if (operation !== "chat") {
    return <Note>Only chats can be stored. Of other requests nothing but these figures is kept.</Note>;
  }
  return (
    <Note>
      What was asked and answered is not kept, or you may not see it. Content is there only where storing is on: send{" "}
      <Code>"store": true</Code> with a chat, and it appears under <TextLink href="/chats">Chats</TextLink>. An operator
      can make that the account's default. Chats that fail are never stored.
    </Note>
  );
}
