// Signs in with a passkey, and adds passkeys. The pages also work without this script, and in browsers without
// passkeys.
import {
  browserSupportsWebAuthn,
  browserSupportsWebAuthnAutofill,
  startAuthentication,
  startRegistration,
} from "/assets/simplewebauthn.js";

/** The time for which a challenge is used; the server forgets it after five minutes. */
const freshMs = 270_000;

/** WebAuthn accepts no IP address as a relying party id. */
const isAtAddress = /^(?:[\d.]+|\[.*\])$/.test(location.hostname);
const isPossible = browserSupportsWebAuthn() && window.isSecureContext && !isAtAddress;

async function ask(path, body, csrf) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (csrf !== undefined) headers["x-csrf-token"] = csrf;
  const response = await fetch(path, { method: "POST", headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Refusal(answer.error.message);
  return answer;
}

/** An error whose message comes from the server and is made for people. */
class Refusal extends Error {}

const wordsByName = {
  NotAllowedError: "Nothing was chosen, or it took too long. Try again.",
  AbortError: "",
  InvalidStateError: "This device already has a passkey for you here.",
  SecurityError: "Passkeys do not work at this address.",
  NotSupportedError: "This device cannot make the kind of passkey that is needed here.",
  TypeError: "The server cannot be reached. Try again.",
};

function wordsFor(error) {
  if (error instanceof Refusal) return error.message;
  return wordsByName[error?.name] ?? "That did not work. Try again.";
}

/** Runs the task with the button disabled, and shows the result. */
async function attempt(button, status, task) {
  button.disabled = true;
  status.textContent = "Waiting for your passkey…";
  try {
    await task();
    status.textContent = "";
  } catch (error) {
    status.textContent = wordsFor(error);
  } finally {
    button.disabled = false;
  }
}

async function signIn(next, useBrowserAutofill) {
  const { challenge_id, options } = await ask("/sign-in/passkey/options");
  const response = await startAuthentication({ optionsJSON: options, useBrowserAutofill });
  const { next: target } = await ask("/sign-in/passkey", { challenge_id, response, next });
  location.assign(target);
}

/** Offers passkeys in the browser's autofill list. Errors are not shown, because the user did not start this. */
async function offerInField(next) {
  if (!document.querySelector("input[autocomplete~='webauthn']") || !(await browserSupportsWebAuthnAutofill())) return;
  const again = setTimeout(() => offerInField(next), freshMs);
  await signIn(next, true).catch((error) => {
    if (error?.name !== "AbortError") clearTimeout(again);
  });
}

function setUpSignIn(place) {
  const [button, status] = [place.querySelector("button"), place.querySelector("[role=status]")];
  const { next } = place.dataset;
  button.addEventListener("click", () => attempt(button, status, () => signIn(next, false)));
  place.hidden = false;
  offerInField(next);
}

function setUpSection(section) {
  const form = section.querySelector("form.fields");
  const [button, status] = [form.querySelector("button"), section.querySelector("[role=status]")];
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(button, status, async () => {
      const { csrf } = section.dataset;
      const optionsJSON = await ask("/v1/passkeys/options", undefined, csrf);
      const response = await startRegistration({ optionsJSON });
      await ask("/v1/passkeys", { name: form.elements.namedItem("name").value, response }, csrf);
      location.assign("/settings?done=passkey");
    });
  });
  form.hidden = false;
}

/** Links to a host name, if the page was opened at a loopback address, where passkeys do not work. */
function pointElsewhere(section) {
  const place = section.querySelector("[data-elsewhere]");
  if (!isAtAddress || !window.isSecureContext || location.protocol !== "http:") return;
  place.querySelector("a").href = `http://localhost:${location.port}/settings`;
  place.hidden = false;
}

const signInPlace = document.querySelector("[data-passkey-sign-in]");
if (signInPlace && isPossible) setUpSignIn(signInPlace);
const section = document.querySelector("[data-passkeys]");
if (section) (isPossible ? setUpSection : pointElsewhere)(section);
