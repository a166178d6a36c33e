// The page Signing keys: the current, previous and next keys for access tokens, and the rotation.
import { Button, Code, Group, Text } from "@mantine/core";
import { SyncIcon } from "@primer/octicons-react";
import { useDeferredValue } from "react";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import type { SigningKey } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { ago } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

const path = "/v1/admin/signing-keys";
const states: Record<SigningKey["state"], { kind: StateKind; word: string; meaning: string }> = {
  upcoming: { kind: "waiting", word: "Upcoming", meaning: "published, will start signing soon" },
  signing: { kind: "good", word: "Signing", meaning: "signs all new tokens" },
  verifying: { kind: "plain", word: "Verifying", meaning: "only verifies tokens signed earlier" },
};

const columns: Column<SigningKey>[] = [
  {
    name: "state",
    head: "State",
    cell: ({ state }) => (
      <>
        <State kind={states[state].kind}>{states[state].word}</State>
        <SmallNote mt={4}>{states[state].meaning}</SmallNote>
      </>
    ),
  },
  {
    name: "id",
    head: "Id",
    wideOnly: true,
    width: "20rem",
    cell: ({ id }) => (
      <Group gap={4} wrap="nowrap">
        <Code>{id}</Code>
        <CopyAction value={id} label={`Copy the id ${id}`} />
      </Group>
    ),
  },
  { name: "active", head: "Signs", width: "9rem", cell: ({ active_at: at }) => <Begin at={at} /> },
  {
    ...{ name: "retires", head: "Retires", width: "8rem", wideOnly: "middle" },
    cell: ({ retires_at: at }) => <Ago seconds={at} never="not planned" />,
  },
];

function Begin({ at }: { at: number }) {
  return (
    <>
      {at <= nowSeconds() ? "since " : "begins "}
      <Ago seconds={at} />
    </>
  );
}

export const SigningKeysPage = operatorsOnly("Signing keys", SigningKeys);

function SigningKeys() {
  const listing = useList<SigningKey>(path, {}, { everyMs: 60_000 });
  // The hint about the next key is deferred as long as the rows. A hint that appeared after the rows would move them.
  const upcoming = useDeferredValue(listing.items).find(({ state }) => state === "upcoming");
  const rotation = useQuestion(() => call<SigningKey>("POST", `${path}/rotate`), {
    stale: [path],
    said: (key) => `A new key was published. It starts signing ${ago(key.active_at)}.`,
  });
  return (
    <Page
      title="Signing keys"
      about="Signing keys sign the access tokens of keys and apps. Other services can then verify a token without calling this server. Keys are replaced automatically every 90 days."
      actions={
        <Button leftSection={<SyncIcon />} disabled={upcoming !== undefined} onClick={() => rotation.ask()}>
          Rotate
        </Button>
      }
    >
      {upcoming && (
        <Text size="sm" role="status">
          The next key is already published and starts signing {ago(upcoming.active_at)}. Until then you cannot rotate
          again.
        </Text>
      )}
      <LongTable
        label="Signing keys"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={66}
        empty={<Empty title="No signing key">The server creates a signing key when it issues the first token.</Empty>}
        below={
          <Note>
            Services that verify tokens find the public keys at <Code>/.well-known/jwks.json</Code>. The private keys
            never leave the server.
          </Note>
        }
      />
      <Confirm {...rotation.dialog} title="Rotate the signing key?" action="Rotate key" final={false}>
        A new key is published immediately and starts signing in ten minutes, so that other services can load it first.
        <Text size="sm" mt="xs">
          Existing tokens stay valid until they expire, within a day at most. After that the old key is retired. To end
          a token now, revoke its API key.
        </Text>
      </Confirm>
    </Page>
  );
}
