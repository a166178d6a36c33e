// What to do where there is no model: operators add one, others know whom to ask.
import { useSession } from "../../api/session.tsx";
import { environmentNames } from "../words/environments.ts";
import { Empty } from "./empty.tsx";
import { LinkButton } from "./links.tsx";

export function NoModels() {
  const { isOperator, environment, environments } = useSession();
  const others = environments.filter((one) => one !== environment).map((one) => environmentNames[one]);
  const here = environmentNames[environment];
  if (isOperator) {
    return (
      <Empty title="No model runs yet" action={<LinkButton href="/admin/upstreams">Add an upstream</LinkButton>}>
        Models come from upstreams: a model server in your network, or a provider with an API key. Add one, and all its
        models are here. If there is one already, it may be out of reach, or not for the environment {here}.
      </Empty>
    );
  }
  return (
    <Empty title="No model is open to you here">
      This account may use none in the environment {here}. Choose another environment at the top ({others.join(" or ")}
      ), or ask whoever operates this server to add a model or to open one for you.
    </Empty>
  );
}
