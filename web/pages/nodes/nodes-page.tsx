// The page Nodes: the joined machines with their state, and one node in a drawer, named by the address.
import { Anchor } from "@mantine/core";
import { useEffect } from "react";
import { useSearchParams } from "wouter";
import { useList } from "../../api/queries.ts";
import type { Node } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { count } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { AddNode } from "./add-node.tsx";
import { JoinTokens } from "./join-tokens.tsx";
import { approvedText, NodeSince, NodeState, runningText, waitsForApproval } from "./node-state.tsx";
import { NodeView } from "./node-view.tsx";
import { nodesPath } from "./use-node-change.ts";
import { type ReplicaName, useReplicas } from "./use-replicas.ts";
import { WaitingNodes } from "./waiting-nodes.tsx";

export const NodesPage = operatorsOnly("Nodes", Nodes);

function Nodes() {
  const [search, setSearch] = useSearchParams();
  const listing = useList<Node>(nodesPath, {}, { everyMs: 5_000 });
  const replicaName = useReplicas();
  const wanted = search.get("node");
  const chosen = listing.items.find(({ id, name }) => id === wanted || name === wanted);
  // The page Upstreams links to a node by name. The id replaces the name in the address, because names may change.
  const chosenId = chosen?.id;
  useEffect(() => {
    if (chosenId !== undefined && chosenId !== wanted) setSearch({ node: chosenId }, { replace: true });
  }, [chosenId, wanted, setSearch]);
  const choose = ({ id }: Pick<Node, "id">) => setSearch({ node: id });
  const close = () => setSearch({});
  const add = <AddButton onClick={() => setSearch({ new: "" })}>Add a node</AddButton>;
  return (
    <Page
      title="Nodes"
      about="Other machines that serve their models through this server. Each node opens the connection itself."
      actions={listing.items.length > 0 && add}
    >
      <WaitingNodes nodes={listing.items.filter(waitsForApproval)} choose={choose} />
      <LongTable
        label="Nodes"
        listing={listing}
        columns={columnsOf(choose, replicaName)}
        keyOf={({ id }) => id}
        rowHeight={60}
        choose={choose}
        empty={
          <Empty title="No nodes yet" action={add}>
            A node is another machine that runs Headrace, such as a workstation with a graphics card. It joins with one
            command, connects from behind any router, and serves the models that you approve.
          </Empty>
        }
      />
      <JoinTokens />
      <FormDrawer of={chosen} title={() => "Node"} size="lg" close={close}>
        {(node) => <NodeView key={node.id} {...{ node, replicaName, close }} />}
      </FormDrawer>
      <AddNode opened={search.has("new")} close={close} show={(id) => choose({ id })} />
    </Page>
  );
}

function columnsOf(choose: (node: Node) => void, replicaName: ReplicaName | undefined): Column<Node>[] {
  return [
    {
      name: "name",
      head: "Name",
      cell: (node) => (
        <>
          <Anchor component="button" type="button" size="sm" fw={500} ta="left" onClick={() => choose(node)}>
            {node.name}
          </Anchor>
          <SmallNote style={{ overflowWrap: "anywhere" }}>{node.client_address ?? "not connected"}</SmallNote>
          {node.connected_at !== null && <SmallNote hiddenFrom="sm">{runningText(node)} running</SmallNote>}
        </>
      ),
    },
    { name: "state", head: "Status", cell: (node) => <NodeState node={node} /> },
    { name: "models", head: "Approved models", numeric: true, wideOnly: true, cell: approvedText },
    { name: "running", head: "Running", numeric: true, wideOnly: true, cell: runningText },
    { name: "waiting", head: "Waiting", numeric: true, wideOnly: true, cell: ({ waiting }) => count(waiting) },
    { name: "version", head: "Version", wideOnly: true, cell: ({ version }) => version ?? "" },
    { name: "since", head: "Connected", wideOnly: true, cell: (node) => <NodeSince node={node} /> },
    ...(replicaName ? [replicaColumn(replicaName)] : []),
  ];
}

function replicaColumn(replicaName: ReplicaName): Column<Node> {
  return {
    name: "replica",
    head: "Replica",
    wideOnly: true,
    cell: ({ replica_id: id }) => (id === null ? "" : replicaName(id)),
  };
}
