// The filters of the explorer: time, grouping, and a single model, key, app or tag.
import { Chip, Group, Paper, SimpleGrid, Text, TextInput } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { AppList } from "../../api/types.ts";
import { operatorGroups, usageGroups } from "../../api/usage.ts";
import { isReaderElsewhere } from "../../parts/chart/chart-time.ts";
import { Choice } from "../../parts/editing/choice.tsx";
import { AccountFilter } from "../../parts/filters/account-filter.tsx";
import { ChoiceFilter } from "../../parts/filters/choice-filter.tsx";
import { KeyFilter } from "../../parts/filters/key-filter.tsx";
import { ModelFilter } from "../../parts/filters/model-filter.tsx";
import { TagFilter } from "../../parts/filters/tag-filter.tsx";
import { TextLink } from "../../parts/page/links.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { type Asked, bucketNames, dateText, groupText, groupTitles, rangeNames, ranges } from "./usage-ask.ts";

const bucketTitles = { auto: "Automatic", hour: "Hour", day: "Day", month: "Month" } as const;

interface UsageFiltersProps {
  asked: Asked;
  /** The bucket parameter in the page's address. */
  bucket: string;
  change(changes: Readonly<Record<string, string>>): void;
  keyName(id: string): string;
  appName(id: string): string;
}

export function UsageFilters({ asked, bucket, change, keyName, appName }: UsageFiltersProps) {
  const apps = useRead<AppList>("/v1/apps", { limit: 100 });
  const { range, days, model, key, app, tag, hoursFit, problem } = asked;
  const appNames = new Map([
    ...(app ? [[app, appName(app)] as const] : []),
    ...(apps.data?.data.map(({ id, name }) => [id, name] as const) ?? []),
  ]);
  const today = dateText(nowSeconds());
  return (
    <Paper withBorder p="md" component="section" aria-label="Filters">
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm">
        <Choice
          label="Time"
          size="xs"
          value={range}
          allowDeselect={false}
          data={rangeNames.map((name) => ({ value: name, label: ranges[name].title }))}
          onChange={(chosen) =>
            chosen && change(chosen === "custom" ? { range: chosen, ...days } : { range: chosen, from: "", to: "" })
          }
        />
        <Choice
          label="Interval"
          size="xs"
          value={bucket}
          allowDeselect={false}
          data={bucketNames.map((name) => ({
            value: name,
            label: bucketTitles[name],
            disabled: name === "hour" && !hoursFit,
          }))}
          onChange={(chosen) => chosen && change({ bucket: chosen })}
        />
        <ModelFilter value={model ?? ""} choose={(chosen) => change({ model: chosen })} />
        <KeyFilter value={key} nameOf={keyName} choose={(chosen) => change({ key: chosen })} />
        <ChoiceFilter
          {...{ label: "App", value: app ?? "" }}
          data={[...appNames].map(([value, label]) => ({ value, label }))}
          all={{ short: "All", long: "All apps" }}
          nothing="No matching app"
          choose={(chosen) => change({ app: chosen })}
        />
        {asked.isAll ? (
          <AccountFilter value={asked.account ?? ""} choose={(chosen) => change({ account: chosen })} />
        ) : (
          <TagFilter value={tag ?? ""} choose={(chosen) => change({ tag: chosen })} />
        )}
      </SimpleGrid>
      {range === "custom" && (
        <Group mt="sm" gap="sm" align="start">
          <TextInput
            label="First day"
            type="date"
            size="xs"
            value={days.from}
            max={today}
            error={problem}
            onChange={(event) => event.currentTarget.value && change({ from: event.currentTarget.value })}
          />
          <TextInput
            label="Last day"
            type="date"
            size="xs"
            value={days.to}
            max={today}
            onChange={(event) => event.currentTarget.value && change({ to: event.currentTarget.value })}
          />
          {isReaderElsewhere() && <SmallNote mt={28}>Days are in UTC.</SmallNote>}
        </Group>
      )}
      <Grouping {...{ asked, change }} />
    </Paper>
  );
}

function Grouping({ asked: { isAll, groupBy }, change }: Pick<UsageFiltersProps, "asked" | "change">) {
  const { isManager } = useSession();
  const groups = isAll ? operatorGroups : usageGroups;
  return (
    <Group gap="xs" mt="sm" role="group" aria-labelledby="group-by">
      <Text size="xs" fw={500} id="group-by">
        Group by
      </Text>
      <Chip.Group
        multiple
        value={[...groupBy]}
        onChange={(chosen) => change({ group: groupText(groups.filter((group) => chosen.includes(group))) })}
      >
        {groups.map((group) => (
          <Chip key={group} value={group} size="xs" variant="outline">
            {groupTitles[group]}
          </Chip>
        ))}
      </Chip.Group>
      {isManager && !isAll && (
        <SmallNote>
          For usage by person, open <TextLink href="/statements?by=person">Statements</TextLink>.
        </SmallNote>
      )}
    </Group>
  );
}
