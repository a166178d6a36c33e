// The page API Keys: the list, or one key.
import { useRoute } from "wouter";
import { KeyList } from "./key-list.tsx";
import { KeyPage } from "./key-page.tsx";

export function KeysPage() {
  const [isOne, parameters] = useRoute("/settings/api-keys/:id");
  return isOne ? <KeyPage id={parameters.id} /> : <KeyList />;
}
