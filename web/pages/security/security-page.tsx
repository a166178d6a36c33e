// The page Profile and sign-in: one's own name, password, passkeys, and the browsers that are signed in.
import { Page } from "../../parts/page.tsx";
import { Passkeys } from "./passkeys.tsx";
import { Password } from "./password.tsx";
import { Profile } from "./profile.tsx";
import { Sessions } from "./sessions.tsx";

export function SecurityPage() {
  return (
    <Page title="Profile and sign-in" about="Who you are, how you sign in, and where you are signed in.">
      <Profile />
      <Password />
      <Passkeys />
      <Sessions />
    </Page>
  );
}
