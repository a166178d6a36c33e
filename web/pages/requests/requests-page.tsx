// The page Logs: the requests of an environment as they end, and one of them in full beside the list.
import { useRoute } from "wouter";
import { RequestDrawer } from "./request-drawer.tsx";
import { RequestList } from "./request-list.tsx";

export function RequestsPage() {
  const [isOne, parameters] = useRoute("/requests/:id");
  return (
    <>
      <RequestList />
      <RequestDrawer id={isOne ? parameters.id : null} />
    </>
  );
}
