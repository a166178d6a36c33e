// The page People: everyone who may sign in, and one person in a drawer, named by the address.
import { Button, Group, Text, TextInput } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "wouter";
import { useSession } from "../../api/session.tsx";
import type { Person } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { usePeopleList } from "../../parts/membership/people-list.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { NameButton, TextLink } from "../../parts/page/links.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { day } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";
import { PersonView } from "./person-view.tsx";

export const PeoplePage = operatorsOnly("People", People);

function People() {
  const [search, setSearch] = useSearchParams();
  const email = search.get("email") ?? "";
  const chosen = search.get("person");
  const { listing, status, nameHead, usageColumns } = usePeopleList<Person>("/v1/admin/people", { email });
  const { person: me } = useSession().session;
  const choose = (id: string | null) =>
    setSearch({ ...(email === "" ? {} : { email }), ...(id === null ? {} : { person: id }) });
  const columns: Column<Person>[] = [
    {
      name: "name",
      ...nameHead,
      cell: ({ id, name, email: address, suspended_at: suspendedAt }) => (
        <>
          <NameButton show={() => choose(id)}>{name}</NameButton>
          {id === me.id && (
            <Text span size="xs" c="dimmed">
              {" "}
              (you)
            </Text>
          )}
          <SmallNote>{address}</SmallNote>
          {suspendedAt !== null && <State kind="warning">Suspended</State>}
        </>
      ),
    },
    {
      name: "operator",
      head: "Operator",
      cell: ({ is_operator }) => (is_operator ? <State kind="good">Operator</State> : <Note>no</Note>),
    },
    { name: "created", head: "Since", wideOnly: true, cell: ({ created_at }) => day(created_at) },
    ...usageColumns,
  ];
  return (
    <Page
      title="People"
      about={
        <>
          All people who can sign in. To add a person, open an <TextLink href="/admin/accounts">account</TextLink> and
          invite the person there.
        </>
      }
    >
      <Find key={email} email={email} find={(address) => setSearch(address === "" ? {} : { email: address })} />
      <LongTable
        label="People"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={60}
        choose={({ id }) => choose(id)}
        status={status && `${status} Find others by e-mail address.`}
        empty={
          <Empty title="No person with this e-mail address">
            Enter the whole address. People with a pending invitation are listed on the account's page.
          </Empty>
        }
      />
      <FormDrawer of={chosen} title={() => "Person"} close={() => choose(null)}>
        {(id) => <PersonView key={id} id={id} close={() => choose(null)} />}
      </FormDrawer>
    </Page>
  );
}

function Find({ email, find }: { email: string; find(address: string): void }) {
  const [text, setText] = useState(email);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    find(text.trim());
  };
  return (
    <form onSubmit={submit}>
      <Group align="end" gap="xs">
        <TextInput
          label="Find by e-mail address"
          type="search"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          leftSection={<SearchIcon />}
          w={300}
          maw="100%"
        />
        <PlainButton type="submit">Find</PlainButton>
        {email !== "" && (
          <Button variant="subtle" onClick={() => find("")}>
            Show all people
          </Button>
        )}
      </Group>
    </form>
  );
}
