// The page Upstreams: the model servers with their state, and one server in a drawer, named by the address.
import { Text } from "@mantine/core";
import { useSearchParams } from "wouter";
import { useList } from "../../api/queries.ts";
import type { Upstream } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { NameButton } from "../../parts/page/links.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { count } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { AddUpstream } from "./add-upstream.tsx";
import { addressOf, failureOf, sourceNames, UpstreamState } from "./upstream-state.tsx";
import { UpstreamView } from "./upstream-view.tsx";

export const UpstreamsPage = operatorsOnly("Upstreams", Upstreams);

function Upstreams() {
  const [search, setSearch] = useSearchParams();
  const listing = useList<Upstream>("/v1/admin/upstreams", {}, { everyMs: 5_000 });
  const name = search.get("upstream");
  const chosen = listing.items.find((upstream) => upstream.name === name);
  const choose = (upstream: Upstream) => setSearch({ upstream: upstream.name });
  const close = () => setSearch({});
  const columns: Column<Upstream>[] = [
    {
      name: "name",
      head: "Name",
      cell: (upstream) => (
        <>
          <NameButton show={() => choose(upstream)}>{upstream.name}</NameButton>
          <SmallNote lineClamp={1} style={{ overflowWrap: "anywhere" }}>
            {failureOf(upstream) ?? addressOf(upstream)}
          </SmallNote>
        </>
      ),
    },
    { name: "state", head: "State", cell: (upstream) => <UpstreamState upstream={upstream} /> },
    { name: "source", head: "Source", wideOnly: true, cell: ({ source }) => sourceNames[source] },
    { name: "models", head: "Models", numeric: true, wideOnly: true, cell: ({ models }) => count(models) },
    {
      name: "running",
      head: "Running",
      numeric: true,
      cell: ({ running, concurrency }) => (
        <>
          {count(running)}
          {concurrency !== null && (
            <Text span size="sm" c="dimmed">
              {" "}
              of {count(concurrency)}
            </Text>
          )}
        </>
      ),
    },
    { name: "waiting", head: "Waiting", numeric: true, wideOnly: true, cell: ({ waiting }) => count(waiting) },
  ];
  const add = <AddButton onClick={() => setSearch({ new: "" })}>Add upstream</AddButton>;
  return (
    <Page
      title="Upstreams"
      about="Model servers that answer requests. If several upstreams have a model, a request goes to a free one with the fastest answers."
      actions={add}
    >
      <LongTable
        label="Upstreams"
        listing={listing}
        columns={columns}
        keyOf={(upstream) => upstream.name}
        rowHeight={60}
        choose={choose}
        empty={
          <Empty title="No upstreams yet" action={add}>
            Add a server with an OpenAI-compatible API, such as vLLM, llama.cpp, Ollama or a provider. You can then call
            its models here.
          </Empty>
        }
      />
      <FormDrawer
        of={search.has("new") ? "new" : chosen}
        title={(shown) => (shown === "new" ? "Add upstream" : "Upstream")}
        size="lg"
        close={close}
      >
        {(shown) =>
          shown === "new" ? (
            <AddUpstream taken={listing.items.map((upstream) => upstream.name)} close={close} done={choose} />
          ) : (
            <UpstreamView key={shown.name} upstream={shown} close={close} />
          )
        }
      </FormDrawer>
    </Page>
  );
}
