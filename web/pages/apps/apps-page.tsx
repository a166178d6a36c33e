// The page Apps: the account's own apps, the apps that the user authorized, or one of the account's apps.
import { Tabs } from "@mantine/core";
import { useRoute, useSearchParams } from "wouter";
import { useSession } from "../../api/session.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Page } from "../../parts/page/page.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { AllowedApps } from "./allowed-apps.tsx";
import { AppPage } from "./app-page.tsx";
import { CreateApp } from "./create-app.tsx";
import { MyApps } from "./my-apps.tsx";

export function AppsPage() {
  const [isOne, parameters] = useRoute("/apps/:id");
  return isOne ? <AppPage id={parameters.id} /> : <BothTabs />;
}

function BothTabs() {
  const { environment, isManager } = useSession();
  const [parameters, setParameters] = useSearchParams();
  const tab = parameters.get("tab") === "allowed" ? "allowed" : "mine";
  const create = () => setParameters({ create: "1" }, { replace: true });
  return (
    <Page
      title="Apps"
      about={
        tab === "mine"
          ? `Apps sign people in with their account on this server. ${isManager ? "The list shows all apps of the account" : "The list shows your apps"} in ${environmentNames[environment]}.`
          : "Apps that may act on your behalf, in all of your accounts. Their usage counts against the account that you chose for the app."
      }
      actions={tab === "mine" && <AddButton onClick={create}>Register an app</AddButton>}
    >
      <Tabs
        value={tab}
        onChange={(value) => setParameters(value === "allowed" ? { tab: "allowed" } : {}, { replace: true })}
        keepMounted={false}
      >
        <Tabs.List>
          <Tabs.Tab value="mine">My apps</Tabs.Tab>
          <Tabs.Tab value="allowed">Apps I allowed</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="mine" pt="lg">
          <MyApps create={create} />
        </Tabs.Panel>
        <Tabs.Panel value="allowed" pt="lg">
          <AllowedApps />
        </Tabs.Panel>
      </Tabs>
      <CreateApp opened={(parameters.get("create") ?? "") !== ""} close={() => setParameters({}, { replace: true })} />
    </Page>
  );
}
