// One person: their accounts, and the operator's actions.
import { Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { PersonDetails } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { at, day } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { PersonActions } from "./person-actions.tsx";

export function PersonView({ id, close }: { id: string; close(): void }) {
  const { data: person, error, refetch } = useRead<PersonDetails>(`/v1/admin/people/${encodeURIComponent(id)}`);
  if (!person) {
    return error ? (
      <Failure error={error} retry={error.status === 404 ? undefined : refetch} />
    ) : (
      <Skeleton height={200} />
    );
  }
  return (
    <Stack gap="lg">
      <div>
        <Title order={2}>{person.name}</Title>
        <Note style={{ overflowWrap: "anywhere" }}>{person.email}</Note>
      </div>
      <Text size="sm" c="dimmed" component="div">
        Since {day(person.created_at)}
        {person.suspended_at !== null && `. Suspended since ${at(person.suspended_at)}`}
        <Group gap={2} wrap="nowrap" style={{ overflowWrap: "anywhere" }}>
          {person.id}
          <CopyAction value={person.id} label="Copy the id of the person" />
        </Group>
      </Text>
      <Stack gap="xs">
        <Title order={3} size="h5">
          Member of
        </Title>
        {person.memberships.length === 0 && <Note>No account. This person can sign in but cannot use anything.</Note>}
        {person.memberships.map(({ id: membership, account_id, account_name, role }) => (
          <Text size="sm" key={membership}>
            <PlainLink href={`/admin/accounts/${account_id}?tab=members`}>{account_name}</PlainLink>, as {role}
          </Text>
        ))}
      </Stack>
      <PersonActions person={person} close={close} />
    </Stack>
  );
}
