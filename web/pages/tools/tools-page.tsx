// The page Tools: the user's tools at all MCP servers, the connected accounts, test calls, and client setup.
import { Stack } from "@mantine/core";
import { PlugIcon, SearchIcon } from "@primer/octicons-react";
import { useSearchParams } from "wouter";
import { useOffer } from "../../api/offer.ts";
import type { Listed, Offer } from "../../api/tools.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { SearchField } from "../../parts/filters/search-field.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { ConnectClient } from "./connect-client.tsx";
import { byServer, isFound } from "./offered.ts";
import { OwnAccounts } from "./own-accounts.tsx";
import { ServerOffer } from "./server-offer.tsx";
import { ToolView } from "./tool-view.tsx";

export function ToolsPage() {
  const [parameters, setParameters] = useSearchParams();
  const { data, error, refetch } = useOffer();
  const put = (name: "tool" | "connect" | null, value = "") =>
    setParameters((before) => {
      const after = new URLSearchParams(before);
      after.delete("tool");
      after.delete("connect");
      if (name) after.set(name, value);
      return after;
    });
  const chosen = data?.tools.find(({ name }) => name === parameters.get("tool"));
  const servers = data ? byServer(data).flatMap(({ server }) => (server === "" ? [] : [server])) : [];
  return (
    <Page
      title="Tools"
      about="Tools of MCP servers that you, your keys and your apps may use."
      actions={
        <PlainButton leftSection={<PlugIcon />} onClick={() => put("connect")}>
          Connect a client
        </PlainButton>
      }
    >
      <OwnAccounts />
      {error && <Failure error={error} retry={refetch} />}
      {data ? (
        <Offered offer={data} choose={({ name }) => put("tool", name)} />
      ) : (
        !error && <Waiting heights={[36, 220]} />
      )}
      <FormDrawer
        of={parameters.has("connect") ? "connect" : chosen}
        title={(shown) => (shown === "connect" ? "Connect a client" : "Tool")}
        size="lg"
        close={() => put(null)}
      >
        {(shown) =>
          shown === "connect" ? <ConnectClient servers={servers} /> : <ToolView key={shown.name} tool={shown} />
        }
      </FormDrawer>
    </Page>
  );
}

function Offered({ offer, choose }: { offer: Offer; choose(tool: Listed): void }) {
  const [parameters, setParameters] = useSearchParams();
  const search = parameters.get("search") ?? "";
  if (offer.tools.length + offer.prompts.length + offer.resources.length === 0) {
    return (
      <Empty title="No tools available yet">
        Operators add MCP servers. Operators and the owners of your account decide who may use them. Tools that you may
        use appear here.
      </Empty>
    );
  }
  const found = byServer({
    tools: offer.tools.filter((tool) => isFound(tool, search)),
    prompts: offer.prompts.filter((prompt) => isFound(prompt, search)),
    resources: offer.resources.filter((resource) => isFound(resource, search)),
  });
  return (
    <Stack>
      <SearchField
        aria-label="Search tools"
        placeholder="Search"
        leftSection={<SearchIcon />}
        value={search}
        change={(wanted) =>
          setParameters(
            (before) => {
              const after = new URLSearchParams(before);
              if (wanted === "") after.delete("search");
              else after.set("search", wanted);
              return after;
            },
            { replace: true },
          )
        }
      />
      {found.map((one) => (
        <ServerOffer key={one.server} offer={one} choose={choose} />
      ))}
      {found.length === 0 && <Empty title="No matching tool">No tool that you may use matches the search.</Empty>}
    </Stack>
  );
}
