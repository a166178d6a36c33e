// What each kind of limit means, for who meets one for the first time.
import { Code, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { TextLink } from "../../parts/page/links.tsx";
import { Card } from "../../parts/page/section.tsx";

const kinds: readonly (readonly [string, ReactNode])[] = [
  [
    "Requests per minute",
    "How many requests may begin in a minute. Room comes back continuously: at 600 a minute, ten more each second, and no more than a minute's worth is kept.",
  ],
  [
    "Tokens per minute",
    <>
      Prompt and answer together. A request sets aside its prompt and the most it may answer (<Code>max_tokens</Code>);
      what it did not use is given back at its end.
    </>,
  ],
  [
    "Tokens and spend per month",
    "Counted from the first to the last day of a month in UTC, then anew. Requests that still run are not part of it yet. Models without a price cost nothing.",
  ],
  [
    "Quotas per window",
    "Of an hour, five hours, a day, a week, a month or another span, for all models or some. One of the calendar begins anew in UTC, a week on Monday; another begins with its first use and lasts for its span.",
  ],
  [
    "Limits of a key",
    <>
      A key may have a rate and quotas of its own, set under <TextLink href="/settings/api-keys">API keys</TextLink>.
      They hold beside those of the account: whichever is reached first refuses.
    </>,
  ],
  [
    "When one is reached",
    <>
      The answer has status 429, says which limit it was, and in <Code>Retry-After</Code> when to try again. Every
      answer tells what is left in its <Code>x-ratelimit-*</Code> headers.
    </>,
  ],
  [
    "No free model server",
    "Not a limit of the account: a model can answer so many at once. Requests wait for a place for some time, and are refused with status 503 when there is none.",
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
