// Shows what an account or organization used of its limits this calendar month and of its quotas per window, by environment.
import { Group, Paper, Progress, Stack, Text, Title } from "@mantine/core";
import { useSession } from "../../api/session.tsx";
import type { AccountDetails } from "../../api/types.ts";
import { UsedQuotas } from "../../parts/quotas/used-quotas.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { at, count, money, percent } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";

type Quota = AccountDetails["quota"]["environments"][number];

export function AccountMonth({ account: { quota } }: { account: Pick<AccountDetails, "quota"> }) {
  const { environments: here } = useSession();
  const shown = quota.environments.filter(
    ({ environment, tokens, spend, windows }) =>
      here.includes(environment) || tokens.used > 0 || spend.used > 0 || windows.some(({ used }) => used > 0),
  );
  return (
    <Paper withBorder p="lg">
      <Stack>
        <div>
          <Title order={2}>Usage this month and quotas</Title>
          <Note>
            The month since {at(quota.period_start)}; resets <Ago seconds={quota.period_end} />.
          </Note>
        </div>
        {shown.map((one) => (
          <Environment key={one.environment} quota={one} />
        ))}
      </Stack>
    </Paper>
  );
}

function Environment({ quota: { environment, tokens, spend, windows } }: { quota: Quota }) {
  return (
    <Stack gap="xs">
      <Text fw={600} size="sm" component="h3">
        {environmentNames[environment]}
      </Text>
      <Part what="Tokens" of={environmentNames[environment]} {...tokens} format={count} />
      <Part what="Spend" of={environmentNames[environment]} {...spend} format={money} />
      {windows.length > 0 && <UsedQuotas quotas={windows} />}
    </Stack>
  );
}

interface PartProps {
  what: string;
  of: string;
  limit: number | null;
  used: number;
  format(value: number): string;
}

function Part({ what, of, limit, used, format }: PartProps) {
  // A limit of zero counts as fully used.
  const part = limit === null ? 0 : limit === 0 ? 1 : used / limit;
  return (
    <div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{what}</Text>
        <Text size="sm" className="numeric">
          {format(used)}
          <Text span c="dimmed" size="sm">
            {limit === null ? ", no limit" : ` of ${format(limit)} (${percent(part)})`}
          </Text>
        </Text>
      </Group>
      {limit !== null && (
        <Progress
          value={Math.min(1, part) * 100}
          color={part >= 1 ? "red" : part >= 0.8 ? "orange" : "water"}
          aria-label={`${what} used, ${of}`}
          mt={4}
        />
      )}
    </div>
  );
}
