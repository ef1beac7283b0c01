"""Sends the answers of schedules: webhooks as signed JSON, and mail by the account of `tools.mail`."""

from __future__ import annotations

import json

from denizen.adapters.fetch import WebFetcher
from denizen.adapters.webhooks import sign_standard
from denizen.app.settings import Settings
from denizen.app.settings.tools import ToolSection
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NeedsAttention, Unavailable
from denizen.domain.mail import OutgoingMail
from denizen.domain.schedule import DeliveryRoute, ScheduleDelivery
from denizen.ports.fetch import WebRequest
from denizen.ports.mail import MailAccount, Mailbox
from denizen.ports.schedules import RunReport

TIMEOUT_S = 20.0
MAX_ANSWER_BYTES = 10_000
RETRIED_STATUSES = frozenset({408, 425, 429})
"""Statuses of a receiver that may take the same webhook later, beside those of servers that are broken (5xx)."""


class HomeRunSender:
    """Implements `denizen.ports.schedules.RunSender` with the settings of one configuration."""

    def __init__(self, settings: Settings, mailbox: Mailbox, clock: Clock) -> None:
        self._settings = settings
        self._mailbox = mailbox
        self._clock = clock

    async def send(self, delivery: ScheduleDelivery, report: RunReport) -> str:
        if delivery.to is DeliveryRoute.MAIL:
            return await self._send_mail(delivery, report)
        return await self._post(delivery, report)

    async def _send_mail(self, delivery: ScheduleDelivery, report: RunReport) -> str:
        subject = delivery.subject or report.schedule
        mail = OutgoingMail(key=report.run, to=delivery.target, subject=subject, text=f"{report.text}\n")
        await self._mailbox.send(read_mail_account(self._settings), mail)
        return "Sent by mail."

    async def _post(self, delivery: ScheduleDelivery, report: RunReport) -> str:
        body = json.dumps(
            {
                "type": "schedule.answered",
                "timestamp": report.planned_at.isoformat(),
                "data": {
                    "run": report.run,
                    "schedule": report.schedule,
                    "agent": report.agent,
                    "turn": report.turn_id,
                    "text": report.text,
                },
            },
            ensure_ascii=False,
        )
        headers = sign_standard(delivery.secret, report.run, body.encode(), now=self._clock.now())
        headers |= {"content-type": "application/json", "idempotency-key": report.run}
        request = WebRequest(method="POST", url=delivery.target, headers=headers, body=body)
        fetcher = WebFetcher(allow_private=delivery.private_hosts)
        answer = await fetcher.send(request, timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES)
        if 200 <= answer.status < 300:
            return f"The webhook answered {answer.status}."
        told = f"The webhook answered {answer.status}."
        if answer.status in RETRIED_STATUSES or answer.status >= 500:
            raise Unavailable(told, code="webhook_unavailable")
        raise InvalidInput(told, code="webhook_refused", fix="Check the address and the secret of the delivery.")


def read_mail_account(settings: Settings) -> MailAccount:
    """Returns the account of `tools.mail`. Raises NeedsAttention where something is missing."""
    from denizen.builtin_skills import load_builtin
    from denizen.builtin_skills.mail import MailSettings
    from denizen.skill import ToolError

    found = load_builtin("mail").read_settings(settings.tools.get("mail", ToolSection()).options)
    assert isinstance(found, MailSettings)
    try:
        return found.account
    except ToolError as error:
        raise NeedsAttention("There is no account to send mail with.", code="mail_account", why=str(error)) from error
