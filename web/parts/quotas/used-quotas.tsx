// The usage of quotas as bars: used, left, and when each window resets; a nearly exhausted one stands out.
import { Box, type BoxProps, Group, Progress, Stack, Text } from "@mantine/core";
import type { AccountOverview } from "../../api/types.ts";
import { ago, at, money, percent, short } from "../words/figures.ts";
import { SmallNote } from "../words/note.tsx";
import { nameOfQuota } from "../words/quotas.ts";
import { State } from "../words/state.tsx";
import { AskMore } from "./ask-more.tsx";

export type UsedQuota = AccountOverview["quotas"][number];

/** The used part from which a quota counts as nearly exhausted. */
const closePart = 0.8;

interface UsedQuotasProps {
  quotas: readonly UsedQuota[];
  /** True for a quota of which the user may ask for more. */
  mayAsk?(quota: UsedQuota): boolean;
  /** True to show the owner of each quota. */
  ofMany?: boolean;
}

export function UsedQuotas({ quotas, ofMany = false, mayAsk }: UsedQuotasProps) {
  return (
    <Stack gap="sm" component="ul" m={0} p={0} style={{ listStyle: "none" }}>
      {quotas.map((quota) => (
        <li key={JSON.stringify([quota.owner_id, nameOfQuota(quota), quota.window])}>
          <UsedQuotaMeter quota={quota} title={ofMany ? `${nameOfQuota(quota)}${ownerText(quota)}` : undefined} />
          {mayAsk?.(quota) && <AskMore quota={quota} />}
        </li>
      ))}
    </Stack>
  );
}

const owners: Record<UsedQuota["owner"], string> = {
  account: "",
  key: ", key quota",
  member: ", your quota",
  app: ", app quota",
  organization: ", organization quota",
  end_user: ", end user quota",
};

function ownerText({ owner }: UsedQuota): string {
  return owners[owner];
}

interface UsedQuotaMeterProps extends Pick<BoxProps, "mt"> {
  quota: UsedQuota;
  /** The title; by default the quota in words. */
  title?: string | undefined;
}

export function UsedQuotaMeter({ quota, title = nameOfQuota(quota), mt }: UsedQuotaMeterProps) {
  const { unit, amount, used, left } = quota;
  const figure = unit === "usd" ? money : short;
  const part = amount === 0 ? 1 : Math.min(1, used / amount);
  return (
    <Box {...(mt === undefined ? {} : { mt })}>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {title}
        </Text>
        <Group gap={6}>
          {part >= closePart && (
            <State kind={part >= 1 ? "bad" : "warning"}>{part >= 1 ? "Used up" : "Nearly used up"}</State>
          )}
          <Text size="sm" className="numeric" fw={500}>
            {figure(left)} of {figure(amount)} left
          </Text>
        </Group>
      </Group>
      <Progress
        value={part * 100}
        color={part >= 1 ? "red" : part >= closePart ? "orange" : "water"}
        size="sm"
        aria-label={`${title}, used`}
      />
      {part >= 1 && <SmallNote mt={2}>Ask {quota.ask} for more.</SmallNote>}
      <SmallNote mt={2}>
        {amount === 0 ? "No use allowed" : `${figure(used)} used (${percent(part)})`} · {openText(quota)}
      </SmallNote>
    </Box>
  );
}

function openText({ resets_at: opens, hard_stop: stops }: UsedQuota): string {
  const stop = stops ? "hard stop · " : "";
  return stop + timeText(opens);
}

function timeText(opens: number | null): string {
  return opens === null ? "starts with the next use" : `resets ${ago(opens)}, on ${at(opens)}`;
}
