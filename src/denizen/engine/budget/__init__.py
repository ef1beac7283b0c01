"""Budgets of money: reserved before a request is sent, settled when its cost is known."""
