// Reduces the message of a model server to known phrases that quote no request, for operators who see all accounts.

/** Codes of failed connections, of the operating system and of the resolver. */
const codes =
  "ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|ENOTFOUND|ENODATA|ESERVFAIL|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EPIPE|EPROTO|EADDRNOTAVAIL|EADDRINUSE|EACCES|EMFILE|ENFILE";
/** The gateway's descriptions of a failed connection: only a host, an address and a port come after the code. */
const connectionFault = new RegExp(
  String.raw`^(?:[\w.-]{1,64}: )?(?:connect |getaddrinfo |read |write )?(?:${codes})(?: [\w.-]{1,128}| \[?[\da-fA-F:.]{2,45}\]?)?(?::\d{1,5})?$`,
);

const place = String.raw`(?:[\w.[\]-]{1,128}: )?`;
/** Beginnings of messages, without anything that a client chose. */
const phrases = [
  `(?:${codes})`,
  `Failed to connect(?: \\((?:${codes})\\))?`,
  "Unable to connect",
  "no answer began in time",
  String.raw`no answer began within [\d.]{1,12} s, far longer than any before`,
  "no connection became free in time",
  "the connection could not be opened in time",
  "the answer fell silent",
  "closed the connection while it was being opened",
  String.raw`all \d{1,9} connections are in use`,
  "no file descriptor is left for a connection",
  String.raw`more than \d{1,15} bytes`,
  String.raw`\d{1,15} characters that are no JSON object`,
  "no JSON(?: object)?",
  "JSON that ends early",
  "an empty body",
  "an event without (?:a type|its response)",
  "an answer that does not say why it ended",
  "an error in the middle of an answer",
  "a chat completion without a message",
  "a response (?:without output|that is not finished)",
  "a stream without (?:an event|a part of an answer)",
  String.raw`\d{1,15} bytes of comments, or of events without a choice`,
  String.raw`bytes of the type (?:text|application|audio|image|video)/[\w.+]{1,32}`,
  "CUDA out of memory",
  "[Oo]ut of memory",
  "[Cc]onnection (?:error|refused|reset by peer|closed)",
  "[Cc]ertificate has expired",
  "self[- ]signed certificate",
  "unable to (?:get local issuer|verify the first) certificate",
  "[Ii]nternal [Ss]erver [Ee]rror",
  "[Bb]ad [Gg]ateway",
  "[Ss]ervice (?:[Tt]emporarily )?[Uu]navailable",
  "[Gg]ateway [Tt]ime-?out",
  "[Uu]nauthorized",
  "[Ff]orbidden",
  "[Nn]ot [Ff]ound",
  "[Tt]oo [Mm]any [Rr]equests",
  "[Ss]low down",
  "(?:[Mm]odel (?:is )?)?[Oo]verloaded",
  "[Mm]odel (?:is )?not (?:loaded|found|ready)",
  "[Ll]oading model",
  "[Nn]o (?:free )?slots?(?: available)?",
  "[Rr]ate limit(?: reached| exceeded)?",
  "[Ii]nsufficient[ _](?:quota|balance|credits?)",
  "You exceeded your (?:current )?quota",
  "(?:[Ii]ncorrect|[Ii]nvalid) (?:API|api) key(?: provided)?",
  "invalid x-api-key",
  "API key (?:not valid|expired)",
  String.raw`This model's maximum context length is \d{1,9} tokens`,
  "The server had an error while processing your request",
  `${place}Field required`,
  "Extra inputs are not permitted",
  String.raw`${place}Input should be (?:a valid \w{1,20}|(?:greater|less) than(?: or equal to)? -?[\d.]{1,12})`,
].map((phrase) => new RegExp(`^(?:${phrase})(?![\\w-])`));

/** Returns the known phrases of a model server's message, which has one part for each faulty place of a request. */
export function publicReason(reason: string | null): string | null {
  if (reason === null || connectionFault.test(reason)) return reason;
  const known = reason.split("; ").map((part) => phrases.map((phrase) => phrase.exec(part)?.[0]).find(Boolean));
  const shown = known.filter((part) => part !== undefined);
  if (shown.length === 0) return null;
  return shown.length === known.length && shown.join("; ") === reason ? reason : `${shown.join("; ")} …`;
}
