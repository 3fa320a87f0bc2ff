from __future__ import annotations

from django.db import models


class Question(models.Model):
    page = models.PositiveIntegerField(db_index=True)
    text = models.CharField(max_length=200)

    objects: models.Manager[Question] = models.Manager()

    def __str__(self) -> str:
        return self.text


class Respondent(models.Model):
    code = models.CharField(max_length=20, unique=True)

    objects: models.Manager[Respondent] = models.Manager()

    def __str__(self) -> str:
        return self.code


class Answer(models.Model):
    respondent = models.ForeignKey(Respondent, on_delete=models.CASCADE)
    question = models.ForeignKey(Question, on_delete=models.CASCADE)
    value = models.CharField(max_length=200)
    saved_at = models.DateTimeField(auto_now_add=True)

    objects: models.Manager[Answer] = models.Manager()

    def __str__(self) -> str:
        return self.value
