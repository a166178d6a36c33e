// The page Logs: the requests of an environment as they end, and one request in full beside the list.
import { Text } from "@mantine/core";
import { useRoute } from "wouter";
import { useSession } from "../../api/session.tsx";
import type { RequestDetail } from "../../api/types.ts";
import { useAllAccounts } from "../../parts/filters/account-scope.tsx";
import { useAddress } from "../../parts/page/address.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { RecordDrawer } from "../../parts/page/record-drawer.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { RequestList } from "./request-list.tsx";
import { pathOfRequests } from "./request-log.ts";
import { RequestView } from "./request-view.tsx";

export function RequestsPage() {
  const [isOne, parameters] = useRoute("/requests/:id");
  const [{ of }] = useAddress({ of: "" });
  const isAll = useAllAccounts(of);
  return (
    <>
      <RequestList />
      <RecordDrawer<RequestDetail>
        id={isOne ? parameters.id : null}
        title="Request"
        width="38rem"
        list="/requests"
        path={pathOfRequests(isAll)}
        what="the request"
        missing={(again, isBusy) => <Missing {...{ again, isBusy, isAll }} />}
      >
        {(request) => <RequestView request={request} />}
      </RecordDrawer>
    </>
  );
}

function Missing({ again, isBusy, isAll }: { again(): unknown; isBusy: boolean; isAll: boolean }) {
  const { environment, environments, session } = useSession();
  const others = environments.filter((one) => one !== environment).map((one) => environmentNames[one]);
  return (
    <Empty
      title="Request not found"
      action={
        <PlainButton onClick={() => again()} loading={isBusy} mt="xs">
          Look again
        </PlainButton>
      }
    >
      <Text size="sm" ta="left" component="ul" pl="md" my="xs">
        <li>The request may still be running. Requests appear here when they have ended.</li>
        <li>
          The request may belong to another environment. This page shows {environmentNames[environment]}. At the top of
          the page you can choose {others.join(" or ")}.
        </li>
        {!isAll && <li>The request may belong to another account. This page shows {session.account.name}.</li>}
        <li>
          The request may have been refused with 401, because an unknown key has no account. Operators find it in the
          server audit log.
        </li>
        <li>The request may be one of many refused requests. Not all of them are kept.</li>
      </Text>
    </Empty>
  );
}
