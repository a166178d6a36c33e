// The page Webhooks of an account, which report quotas, keys and failing requests.
import { useSession } from "../../api/session.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Page } from "../../parts/page/page.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { ofAccount } from "./webhook-kind.ts";
import { Webhooks } from "./webhooks.tsx";

const title = "Webhooks";

export function WebhooksPage() {
  const { environment, isManager } = useSession();
  if (!isManager) {
    return (
      <Page title={title}>
        <Empty title="Only for owners and admins">
          Owners and admins choose who is notified about the account's quotas and keys.
        </Empty>
      </Page>
    );
  }
  return (
    <Webhooks
      kind={ofAccount}
      title={title}
      about={`Addresses that are notified when a quota is nearly used up, a key expires or requests fail, in ${environmentNames[environment]}.`}
    />
  );
}
