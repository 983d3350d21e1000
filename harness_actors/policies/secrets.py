"""How secrets look that can be known by their form."""

KNOWN_SECRETS: tuple[str, ...] = (
    # Keys of providers that begin by a name. The character before must not go on a word: `task-`.
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{20,}",
    r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{22,}",
    r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}",
    r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}",
    r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35,}",
    r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"(?<![A-Za-z0-9])(?:npm|hf|dop_v1)_[A-Za-z0-9]{20,}",
    r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{16,}",
    r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    # A signed token: three parts, the first of which begins an object of JSON.
    r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"(?<![A-Za-z0-9])(?i:bearer)\s{1,8}[A-Za-z0-9._~+/=-]{16,}",
    r"(?i:aws_secret_access_key)[\"']?\s{0,8}[=:]\s{0,8}[\"']?[A-Za-z0-9/+=]{40,}",
    # The login of an address; its name stays if it has no password.
    r"(?<=://)[^\s/:@\"'\\]{0,200}:[^\s/@\"'\\]{1,500}(?=@)",
)
"""Each takes at most `TOKENS` parts that white space separates. They need no bound: each begins by
a name, and what follows it can be read in one way alone."""

TOKENS = 3

PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
PEM_SECRET = rf"{PEM_BEGIN}(?:(?!-----END)[\s\S])*+(?:{PEM_END})?"
"""A private key, to its end or to that of the text: half of one is no less a secret."""
PEM_HEAD = "-----BEGIN"
PEM_HEAD_CHARS = 90
"""Characters of the line that begins one, at most."""
