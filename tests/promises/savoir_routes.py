"""The HTTP routes of Savoir (inventory 2.7), one row a route, and the rules that hold for all of them.

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

SAVOIR_ROUTES: tuple[Requirement, ...] = (
    Requirement(
        "S-http-sandbox-shell-post",
        "2.7 POST /api/sandbox/shell",
        "A user or API key runs one command or a batch in the sandbox over HTTP.",
        status="covered",
        issue="knowledge",
        same_as=("S20",),
    ),
    Requirement(
        "S-http-sandbox-snapshot-post",
        "2.7 POST /api/sandbox/snapshot",
        "An admin starts the making of a snapshot.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-chats-get",
        "2.7 GET /api/chats",
        "A user lists the own chats and sees nobody else's.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-chats-post",
        "2.7 POST /api/chats",
        "A user creates a chat with an id, a first message and a mode.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-chats-id-get",
        "2.7 GET /api/chats/:id",
        "The owner of a chat reads it with its messages, and anybody else gets 404.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-chats-id-post",
        "2.7 POST /api/chats/:id",
        "The owner of a chat sends a message and gets the answer as an event stream, which also carries the generated "
        "title.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-chats-id-delete", "2.7 DELETE /api/chats/:id", "A user deletes an own chat.", status="open", issue="web"
    ),
    Requirement(
        "S-http-chats-id-share-patch",
        "2.7 PATCH /api/chats/:id/share",
        "Sharing a chat gives it a new random token, and unsharing removes the token.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-sources-get",
        "2.7 GET /api/sources",
        "Anybody who may reach the server reads the list of sources by kind with counts.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-sources-post", "2.7 POST /api/sources", "An admin adds a source.", status="covered", issue="knowledge"
    ),
    Requirement(
        "S-http-sources-id-put",
        "2.7 PUT /api/sources/:id",
        "An admin changes a source.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-sources-id-delete",
        "2.7 DELETE /api/sources/:id",
        "An admin deletes a source.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-sources-ocr-post",
        "2.7 POST /api/sources/ocr",
        "An admin uploads a screenshot or config file and gets the sources found in it, sanitised, to review.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-sync-post",
        "2.7 POST /api/sync",
        "An admin starts a sync of all sources and is told that it started.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-sync-source-post",
        "2.7 POST /api/sync/:source",
        "An admin starts a sync of one source.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-snapshot-status-get",
        "2.7 GET /api/snapshot/status",
        "An admin reads the snapshot status.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-snapshot-sync-post",
        "2.7 POST /api/snapshot/sync",
        "An admin makes the latest snapshot the current one.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-snapshot-config-get",
        "2.7 GET /api/snapshot/config",
        "An admin reads the configuration of the snapshot remote.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-snapshot-config-put",
        "2.7 PUT /api/snapshot/config",
        "An admin changes the configuration of the snapshot remote.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-agent-config-get",
        "2.7 GET /api/agent-config",
        "An admin reads the assistant's settings.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-agent-config-put",
        "2.7 PUT /api/agent-config",
        "An admin saves the assistant's settings, and values out of range are refused.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-agent-config-reset-post",
        "2.7 POST /api/agent-config/reset",
        "An admin resets the assistant's settings to their defaults.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-agent-config-public-get",
        "2.7 GET /api/agent-config/public",
        "Anybody who may reach the server reads the settings in effect, and owners and admins also the two texts for "
        "the prompt.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-stats-get",
        "2.7 GET /api/stats",
        "An admin reads usage of 1 to 365 days, filtered by source and model: totals, trend, by model and source, "
        "top 10 users, every day, by hour, and estimated cost.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-stats-get-feedback",
        "2.7 GET /api/stats",
        "The usage that an admin reads has a feedback score: the share of positive votes on messages of those days.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-stats-me-get",
        "2.7 GET /api/stats/me",
        "A user reads the own usage and nobody else's.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-stats-usage-post",
        "2.7 POST /api/stats/usage",
        "A user or API key reports usage under a source name of 1 to 50 characters and gets its id.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-stats-compute-post",
        "2.7 POST /api/stats/compute",
        "An admin has the usage of a day (yesterday by default) summed per user and model and for everybody, and may "
        "repeat it.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-webhooks-post",
        "2.7 POST /api/webhooks/:platform",
        "A platform's webhook is accepted on its own route only with that platform's signature.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-upload-chat-put",
        "2.7 PUT /api/upload/:chatId",
        "The owner of a chat uploads a file to it and gets its path and URL.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-upload-path-delete",
        "2.7 DELETE /api/upload/…path",
        "A user deletes an upload only below the own prefix.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-messages-id-feedback-patch",
        "2.7 PATCH /api/messages/:id/feedback",
        "A user marks an agent's message in an own chat as positive, negative or neither.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-shared-token-get",
        "2.7 GET /api/shared/:token",
        "Anybody with the token reads a shared chat, which may be cached for 300 seconds.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-http-admin-api-keys-get",
        "2.7 GET /api/admin/api-keys",
        "An admin lists API keys without their text.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-api-keys-post",
        "2.7 POST /api/admin/api-keys",
        "An admin creates an API key, whose text is shown once.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-api-keys-delete",
        "2.7 DELETE /api/admin/api-keys",
        "An admin revokes an API key, which is refused from then on.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-users-get", "2.7 GET /api/admin/users", "An admin lists the users.", status="open", issue="admin"
    ),
    Requirement(
        "S-http-admin-users-patch",
        "2.7 PATCH /api/admin/users",
        "An admin changes the role of another user, but cannot demote oneself.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-users-delete",
        "2.7 DELETE /api/admin/users",
        "An admin deletes another user, but not oneself.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-logs-count-get",
        "2.7 GET /api/admin/logs/count",
        "An admin sees how many log entries a purge would delete before it does.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-logs-stats-get",
        "2.7 GET /api/admin/logs/stats",
        "An admin reads statistics of the logs.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-admin-logs-delete",
        "2.7 DELETE /api/admin/logs",
        "An admin deletes log entries older than a date and of a level.",
        status="open",
        issue="admin",
    ),
    Requirement(
        "S-http-github-repos-get",
        "2.7 GET /api/github/repos",
        "A user lists the GitHub repositories that can become sources.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-http-discord-gateway-get",
        "2.7 GET /api/discord/gateway",
        "The Discord gateway is opened again by a timer every 9 minutes.",
        status="dropped",
        issue="discord",
        reason="It works around a host without long-lived processes; Denizen keeps its gateway connection open.",
    ),
    Requirement(
        "S-auth-sign-in", "2.7", "People sign in with e-mail and password or with GitHub.", status="open", issue="web"
    ),
    Requirement(
        "S-auth-api-keys",
        "2.7",
        "An API key is accepted in `Authorization: Bearer` or in `x-api-key`.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S-auth-admin-list",
        "2.7",
        "Users whose e-mail or user name is on the configured list are admins.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-auth-first-user", "2.7", "The first user who registers becomes an admin.", status="open", issue="web"
    ),
    Requirement(
        "S-http-errors",
        "2.7",
        "Every error of the API carries status, message, why and fix; under `/v1` it has OpenAI's form, whose text "
        "tells the reason and the remedy where there are any.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S-http-rate-limit",
        "2.7",
        "A user who is no admin has 15 messages a day, gets 429 beyond, and sees `X-RateLimit-SimRateLimit` and "
        "`X-RateLimit-Remaining`.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-upload-limits",
        "2.7",
        "An upload is an image, PDF or CSV of at most 8 MB, stored as `<user>/<chat>/<name>-<8 hex>.<ext>`.",
        status="open",
        issue="web",
    ),
    Requirement(
        "S-upload-images",
        "2.7",
        "An uploaded image is encoded again as WebP of at most 2048 pixels at quality 80.",
        status="open",
        issue="web",
    ),
)
