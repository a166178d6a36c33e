// Explains each kind of limit, for users who meet it for the first time.
import { Code, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { TextLink } from "../../parts/page/links.tsx";
import { Card } from "../../parts/page/section.tsx";

const kinds: readonly (readonly [string, ReactNode])[] = [
  [
    "Requests per minute",
    "The number of requests that can start within a minute. The limit refills continuously: at 600 requests per minute, ten more each second, up to 600.",
  ],
  [
    "Tokens per minute",
    <>
      Prompt and answer together. A request reserves its prompt tokens and its largest possible answer (
      <Code>max_tokens</Code>); at its end, unused tokens are returned.
    </>,
  ],
  [
    "Tokens and spend per month",
    "Counted per calendar month in UTC. Running requests are not counted yet. Models without a price add no spend.",
  ],
  [
    "Quotas",
    "An amount per hour, 5 hours, day, week, month or custom time, for all or some models. A calendar quota resets in UTC, and a week starts on Monday. A quota “from first use” starts with the first request and lasts for its time.",
  ],
  [
    "Limits of a key",
    <>
      A key can have its own rate limit and quotas. Set them under{" "}
      <TextLink href="/settings/api-keys">API keys</TextLink>. The limits of the account also apply: a request is
      refused as soon as either limit is reached.
    </>,
  ],
  [
    "When a limit is reached",
    <>
      The request is refused with status 429. The error names the limit, and the header <Code>Retry-After</Code> says
      when to try again. Every answer reports what is left in its <Code>x-ratelimit-*</Code> headers.
    </>,
  ],
  [
    "All model servers were busy",
    "This is not a limit of the account. A model server handles a limited number of requests at once. Other requests wait, and are refused with status 503 if they wait too long.",
  ],
];

export function Explanations() {
  return (
    <Card title="What the limits mean">
      <dl className="meanings">
        {kinds.map(([name, meaning]) => (
          <div key={name}>
            <Text size="sm" fw={600} component="dt">
              {name}
            </Text>
            <Text size="sm" c="dimmed" component="dd" m={0}>
              {meaning}
            </Text>
          </div>
        ))}
      </dl>
    </Card>
  );
}
