// The timeline of a request: one line per stage, on a common scale and in words.
import { Grid, Progress, Stack, Text } from "@mantine/core";
import type { RequestDetail } from "../../api/types.ts";
import { count, duration, money } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";

interface Stage {
  title: string;
  /** Milliseconds from the start of the request. */
  from: number;
  until: number;
  color: string;
  about: string;
}

function stagesOf(request: RequestDetail): Stage[] {
  const { first_token_ms, duration_ms, upstream, attempts, outcome } = request;
  const queued = Math.min(request.queue_ms, duration_ms);
  const waiting: Stage = {
    ...{ title: "Queue", from: 0, until: queued, color: "orange.6" },
    about: queued === 0 ? "No waiting." : "The request waited for a free model server.",
  };
  if (upstream === null) {
    return [
      waiting,
      {
        ...{ title: "No answer", from: queued, until: duration_ms, color: "gray.6" },
        about:
          attempts === 0
            ? "The request was not sent to a model server."
            : "No model server answered. See Attempts for the reasons.",
      },
    ];
  }
  if (first_token_ms === null) {
    return [
      waiting,
      {
        ...{ title: "Answer", from: queued, until: duration_ms, color: "water.6" },
        about:
          outcome === "completed"
            ? "Not streamed, so no first-token time."
            : "The request ended before the first token.",
      },
    ];
  }
  const first = Math.min(Math.max(first_token_ms, queued), duration_ms);
  return [
    waiting,
    {
      ...{ title: "To first token", from: queued, until: first, color: "water.6" },
      about: `The model read the prompt. The first token came ${duration(first)} after the start.`,
    },
    {
      ...{ title: "Stream", from: first, until: duration_ms, color: "green.7" },
      about: "The rest of the answer was generated and sent.",
    },
  ];
}

export function RequestTimeline({ request }: { request: RequestDetail }) {
  const { duration_ms } = request;
  return (
    <Stack component="ol" gap="sm" p={0} m={0} style={{ listStyle: "none" }}>
      {stagesOf(request).map((stage) => (
        <Line
          key={stage.title}
          {...{ duration_ms, stage }}
          time={duration(stage.until - stage.from)}
          label={stage.title}
          about={stage.about}
        />
      ))}
      <Line
        duration_ms={duration_ms}
        stage={undefined}
        label="End"
        time={`at ${duration(duration_ms)}`}
        about={settlement(request)}
      />
    </Stack>
  );
}

function settlement({ total_tokens, cost }: RequestDetail): string {
  if (total_tokens === 0) return "No tokens were counted.";
  const tokens = `${count(total_tokens)} ${total_tokens === 1 ? "token was" : "tokens were"} counted`;
  return cost === null ? `${tokens}.` : `${tokens}, for ${money(cost)}.`;
}

interface LineProps {
  duration_ms: number;
  /** The stage of the line; undefined for the last line, which marks the end of the request. */
  stage: Stage | undefined;
  label: string;
  time: string;
  about: string;
}

function Line({ duration_ms, stage, label, time, about }: LineProps) {
  return (
    <li>
      <Grid gap={4} align="center">
        <Grid.Col span={{ base: 6, xs: 3 }}>
          <Text size="sm" fw={500}>
            {label}
          </Text>
        </Grid.Col>
        <Grid.Col span={{ base: 6, xs: 2 }} order={{ base: 2, xs: 3 }}>
          <Text size="sm" ta="right" className="numeric">
            {time}
          </Text>
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 7 }} order={{ base: 3, xs: 2 }}>
          <Bar duration_ms={duration_ms} stage={stage} />
        </Grid.Col>
      </Grid>
      <SmallNote>{about}</SmallNote>
    </li>
  );
}

/** The minimum width that is visible, in percent. */
const least = 1;

/** Draws a stage on the common scale. Hidden from screen readers, because the line says the same in words. */
function Bar({ duration_ms, stage }: { duration_ms: number; stage: Stage | undefined }) {
  const part = (ms: number) => (duration_ms === 0 ? 0 : (100 * ms) / duration_ms);
  const [from, until] = stage ? [part(stage.from), part(stage.until)] : [100, 100];
  const width = stage && stage.until === stage.from ? 0 : Math.max(least, until - from);
  return (
    <Progress.Root size={12} radius="sm" aria-hidden="true">
      <Progress.Section value={Math.min(from, 100 - width)} color="transparent" />
      <Progress.Section value={width} color={stage?.color ?? "var(--mantine-color-text)"} />
    </Progress.Root>
  );
}
