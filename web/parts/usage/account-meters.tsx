// The remaining amount of each limit, as bars: rates per minute, and the monthly quota.
import { Group, Progress, Stack, Text } from "@mantine/core";
import type { AccountOverview } from "../../api/types.ts";
import { at, money, percent, short, span } from "../words/figures.ts";
import { SmallNote } from "../words/note.tsx";

type Rate = AccountOverview["rate"]["requests"];

export function RateMeters({ rate }: { rate: AccountOverview["rate"] }) {
  return (
    <Stack gap="sm">
      <RateMeter title="Requests per minute" rate={rate.requests} />
      <RateMeter title="Tokens per minute" rate={rate.tokens} />
    </Stack>
  );
}

function RateMeter({ title, rate }: { title: string; rate: Rate }) {
  if (rate === null) return <Meter title={title} remaining="no limit" />;
  const isFull = rate.remaining >= rate.limit;
  return (
    <Meter
      title={title}
      remaining={`${short(rate.remaining)} of ${short(rate.limit)} left`}
      used={1 - rate.remaining / rate.limit}
      note={isFull ? "Full" : `Full again in ${span(Math.max(1, rate.reset_seconds))}`}
    />
  );
}

export function QuotaMeters({ quota }: { quota: AccountOverview["quota"] }) {
  const { tokens, spend, usage_of: usageOf } = quota;
  // A member who may not see the account's figures sees their own, so the label says whose they are.
  const whose = usageOf === "caller" ? "used by you" : "used, no limit";
  return (
    <Stack gap="sm">
      <QuotaMeter title="Tokens this month" {...tokens} whose={whose} format={short} />
      <QuotaMeter title="Spend this month" {...spend} whose={whose} format={money} />
      <SmallNote>Resets on {at(quota.period_end)}</SmallNote>
    </Stack>
  );
}

interface QuotaMeterProps {
  title: string;
  limit: number | null;
  used: number;
  /** The words after the used amount if there is no limit. */
  whose: string;
  format(value: number): string;
}

function QuotaMeter({ title, limit, used, whose, format }: QuotaMeterProps) {
  if (limit === null) return <Meter title={title} remaining={`${format(used)} ${whose}`} />;
  const remaining = Math.max(0, limit - used);
  return (
    <Meter
      title={title}
      remaining={`${format(remaining)} of ${format(limit)} left`}
      used={limit === 0 ? 1 : used / limit}
      note={limit === 0 ? "No use allowed" : `${percent(Math.min(1, used / limit))} used`}
    />
  );
}

interface MeterProps {
  title: string;
  remaining: string;
  /** The used part from 0 to 1; undefined without a limit. */
  used?: number;
  note?: string;
}

function Meter({ title, remaining, used, note }: MeterProps) {
  const part = used === undefined ? 0 : Math.min(1, Math.max(0, used));
  const state = part >= 1 ? "used up" : part >= 0.8 ? "nearly used up" : undefined;
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text size="sm">{title}</Text>
        <Text size="sm" className="numeric" fw={500}>
          {remaining}
        </Text>
      </Group>
      {used !== undefined && (
        <Progress
          value={part * 100}
          color={part >= 1 ? "red" : part >= 0.8 ? "orange" : "water"}
          size="sm"
          aria-label={`${title}, used`}
        />
      )}
      {note && (
        <SmallNote mt={2}>
          {note}
          {state && `: ${state}`}
        </SmallNote>
      )}
    </div>
  );
}
